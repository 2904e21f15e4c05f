"""What `classify` tells about itself."""

from glassformer.tasks.about import About

ABOUT = About(
    name="classify",
    summary="Predict one label, or several, for a text.",
    job="glassformer.tasks.classify.job:JOB",
)
