"""What `translate` tells about itself."""

from glassformer.tasks.about import About

ABOUT = About(
    name="translate",
    summary="Turn one sequence into another: sentences, dates, words into phonemes.",
    job="glassformer.tasks.translate.job:JOB",
)
