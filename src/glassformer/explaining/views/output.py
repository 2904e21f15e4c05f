"""An explanation as a file; what the name ends in says which.

.html              one self-contained page
.json              all numbers
.png, .svg, .pdf   a picture
"""

from pathlib import Path

from glassformer.errors import GlassformerError, refuse_unwritable
from glassformer.explaining.record import ExplanationRecord
from glassformer.explaining.views.document import page_of
from glassformer.explaining.views.picture import draw_explanation
from glassformer.explaining.views.pictures import FORMATS, check_picture
from glassformer.files import write_json, write_text

SUFFIXES = (".html", ".json", *FORMATS)


def check_out(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise GlassformerError(
            f"an explanation is written as {', '.join(SUFFIXES)}, got {str(path)!r}; rename it"
        )
    if suffix in FORMATS:
        check_picture(path)
    if not path.absolute().parent.is_dir():
        raise GlassformerError(f"{path.parent}: no such folder; create it first")
    refuse_unwritable(path)


def write_explanation(
    explanation: ExplanationRecord, path: Path, *, layer: str | None = None, head: int | None = None
) -> None:
    """Write an explanation in the format that the path ends in.

    Args:
        layer, head: The attention to show, as `selection.select` takes them; JSON has all.
    """
    check_out(path)
    suffix = path.suffix.lower()
    if suffix == ".html":
        write_text(page_of(explanation, layer=layer, head=head), path)
    elif suffix == ".json":
        write_json(explanation.as_values(), path)
    else:
        draw_explanation(explanation, path, layer=layer, head=head)
