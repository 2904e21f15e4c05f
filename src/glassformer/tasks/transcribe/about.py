"""The name, summary and options of `transcribe`."""

from pathlib import Path

from glassformer.tasks.about import About, Option, wish
from glassformer.tasks.shared.options import ALIGN, ALTERNATIVES, PICTURE

ABOUT = About(
    name="transcribe",
    summary="Write what is spoken in a recording.",
    job="glassformer.tasks.transcribe.job:JOB",
    options=(
        ALTERNATIVES,
        ALIGN,
        PICTURE,
        Option(
            name="lm",
            kind=Path,
            metavar="RUN",
            run=True,
            help="Search with the language model of this run.",
        ),
        Option(
            name="lm_weight",
            kind=float,
            metavar="W",
            help="The weight of --lm; default 0.3, or what was chosen for n-grams.",
        ),
        Option(
            name="stream",
            kind=bool,
            single=True,
            help="Print words while sound arrives, from a file or, with -, on standard input.",
        ),
        Option(
            name="rate",
            kind=int,
            metavar="HZ",
            least=1,
            single=True,
            help="Samples a second of raw 16-bit sound on standard input.",
        ),
        Option(
            name="srt",
            kind=Path,
            metavar="F.srt",
            single=True,
            help="Save the subtitles of one recording as SRT.",
        ),
        Option(
            name="vtt",
            kind=Path,
            metavar="F.vtt",
            single=True,
            help="Save the subtitles of one recording as WebVTT.",
        ),
    ),
    wishes=wish(
        "transcription, asr, stt, speech, speech recognition, speech to text, speech2text, dictate"
    ),
)
