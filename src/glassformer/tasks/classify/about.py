"""The name and summary of `classify`."""

from glassformer.tasks.about import About

ABOUT = About(
    name="classify",
    summary="Predict one or more labels for a text or a recording.",
    job="glassformer.tasks.classify.job:JOB",
)
