"""The name and summary of `pretrain`."""

from glassformer.tasks.about import About

ABOUT = About(
    name="pretrain",
    summary="Fill in masked words of raw text (a masked language model).",
    job="glassformer.tasks.pretrain.job:JOB",
)
