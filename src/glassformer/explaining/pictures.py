"""What all pictures share: which files they may become, their colours, and how they are saved."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from glassformer.errors import GlassformerError
from glassformer.files import replacing

FORMATS = (".png", ".svg", ".pdf")
INK, LINE = "#222222", "#0072B2"
DOTS_PER_INCH = 160


def check_picture(path: Path) -> None:
    """Refuse a path that cannot be drawn to, before anything is predicted."""
    if path.suffix.lower() not in FORMATS:
        raise GlassformerError(
            f"a picture must end in {', '.join(FORMATS)}, got {str(path)!r}; rename it"
        )
    if not path.absolute().parent.is_dir():
        raise GlassformerError(f"{path.parent}: no such folder for the picture; create it first")
    if find_spec("matplotlib") is None:
        raise GlassformerError(
            "a picture needs matplotlib, which is not installed; "
            "pip install 'glassformer[pictures]'"
        )


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib in the format that the path ends in."""
    with replacing(path) as half:
        figure.savefig(half, format=path.suffix[1:].lower(), dpi=DOTS_PER_INCH)
