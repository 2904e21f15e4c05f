"""The name, summary and options of `pretrain`."""

from glassformer.tasks.about import About
from glassformer.tasks.shared.options import ALTERNATIVES

ABOUT = About(
    name="pretrain",
    summary="Fill in masked words of raw text (a masked language model).",
    job="glassformer.tasks.pretrain.job:JOB",
    options=(ALTERNATIVES,),
)
