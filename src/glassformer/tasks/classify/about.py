"""The name, summary and options of `classify`."""

from glassformer.tasks.about import About
from glassformer.tasks.shared.options import ALTERNATIVES

ABOUT = About(
    name="classify",
    summary="Predict one or more labels for a text or a recording.",
    job="glassformer.tasks.classify.job:JOB",
    options=(ALTERNATIVES,),
)
