"""The name, summary and options of `transcribe`."""

from glassformer.tasks.about import About, Option

ABOUT = About(
    name="transcribe",
    summary="Write what is spoken in a recording.",
    job="glassformer.tasks.transcribe.job:JOB",
    options=(Option(name="times", kind=bool, help="Show when each word is spoken, in seconds."),),
)
