"""The name, summary and options of `translate`."""

from pathlib import Path

from glassformer.tasks.about import About, Option

ABOUT = About(
    name="translate",
    summary="Turn one sequence into another: sentences, dates, words into phonemes.",
    job="glassformer.tasks.translate.job:JOB",
    options=(
        Option(
            name="alternatives",
            kind=int,
            metavar="N",
            least=0,
            help="Show N alternative answers with their scores.",
        ),
        Option(name="scores", kind=bool, help="Show the log-probability of every token."),
        Option(
            name="align",
            kind=bool,
            help="Show when each word is spoken, or which source words it attended to.",
        ),
        Option(
            name="picture",
            kind=Path,
            metavar="F.png",
            single=True,
            help="Save a picture of one input's alignment as .png, .svg or .pdf.",
        ),
        Option(name="prefix", metavar="TEXT", help="Start every answer with this text."),
        Option(
            name="required",
            flag="--with",
            metavar="WORD",
            several=True,
            help="Require this word in every answer; may be repeated.",
        ),
        Option(
            name="forbidden",
            flag="--without",
            metavar="WORD",
            several=True,
            help="Forbid this word in every answer; may be repeated.",
        ),
        Option(
            name="settings",
            flag="--set",
            metavar="decode.key=value",
            several=True,
            help="Change a decoding setting; may be repeated.",
        ),
    ),
)
