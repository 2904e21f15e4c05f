"""The name, summary and options of `transcribe`."""

from pathlib import Path

from glassformer.tasks.about import About, Option

ABOUT = About(
    name="transcribe",
    summary="Write what is spoken in a recording.",
    job="glassformer.tasks.transcribe.job:JOB",
    options=(
        Option(name="times", kind=bool, help="Show when each word is spoken, in seconds."),
        Option(
            name="subtitles",
            kind=Path,
            metavar="F.srt",
            single=True,
            help="Save the subtitles of one recording as .srt or .vtt.",
        ),
    ),
)
