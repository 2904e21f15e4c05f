"""Options of `predict` that mean the same in several jobs."""

from pathlib import Path

from glassformer.tasks.about import Option

ALIGN = Option(
    name="align",
    kind=bool,
    help="Show when each word is spoken, or which source words it attended to.",
)
ALTERNATIVES = Option(
    name="alternatives",
    kind=int,
    metavar="N",
    least=0,
    help="Show N alternative answers, or tokens, with their scores.",
)
PICTURE = Option(
    name="picture",
    kind=Path,
    metavar="F.png",
    single=True,
    help="Save a picture of the alignment, or of the items, as .png, .svg or .pdf.",
)
SETTINGS = Option(
    name="set",
    metavar="decode.key=value",
    several=True,
    help="Change a decoding setting; may be repeated.",
    remote=False,
)
