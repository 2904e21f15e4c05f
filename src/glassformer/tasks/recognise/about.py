"""The name, summary and options of `recognise`."""

from glassformer.tasks.about import About
from glassformer.tasks.shared.options import ALTERNATIVES

ABOUT = About(
    name="recognise",
    summary="Predict one or more labels for an image.",
    job="glassformer.tasks.recognise.job:JOB",
    options=(ALTERNATIVES,),
)
