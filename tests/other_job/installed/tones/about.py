"""What `listen` tells about itself."""

from glassformer.tasks.about import About, Option

ABOUT = About(
    name="listen",
    summary="Write the word that a recording of tones plays.",
    job="tones.job:JOB",
    options=(Option(name="times", kind=bool, help="Show when each letter begins, in seconds."),),
)
