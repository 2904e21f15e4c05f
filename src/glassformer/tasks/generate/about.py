"""The name, summary and options of `generate`."""

from glassformer.tasks.about import About
from glassformer.tasks.shared.options import ALTERNATIVES, SETTINGS

ABOUT = About(
    name="generate",
    summary="Continue text: a language model, from characters to pages.",
    job="glassformer.tasks.generate.job:JOB",
    options=(
        ALTERNATIVES,
        SETTINGS,
    ),
)
