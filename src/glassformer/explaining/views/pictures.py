"""What all pictures share: the files they may become, colours, fonts, and how they are saved."""

import unicodedata
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from glassformer.errors import GlassformerError, install, refuse_unwritable
from glassformer.files import replacing

FORMATS = (".png", ".svg", ".pdf")
INK, QUIET = "#222222", "#666b70"
FOR, AGAINST = "#0072b2", "#d55e00"
AMOUNT = "#007a5c"  # how much, without a side: attention, and methods without a sign
DOTS_PER_INCH = 160
DEFAULT = "DejaVu Sans"  # ships with matplotlib
EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH")
SHOWN = 12  # missing characters listed in an error


def check_picture(path: Path) -> None:
    """Refuse a path that cannot be drawn to, before anything is predicted."""
    if path.suffix.lower() not in FORMATS:
        raise GlassformerError(
            f"a picture must end in {', '.join(FORMATS)}, got {str(path)!r}; rename it"
        )
    if not path.absolute().parent.is_dir():
        raise GlassformerError(f"{path.parent}: no such folder for the picture; create it first")
    refuse_unwritable(path)
    if find_spec("matplotlib") is None:
        raise GlassformerError(
            f"a picture needs matplotlib, which is not installed; {install('pictures')}"
        )


def save_picture(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib in the format that the path ends in."""
    with replacing(path) as half:
        figure.savefig(half, format=path.suffix[1:].lower(), dpi=DOTS_PER_INCH)


def families_for(text: str) -> list[str]:
    """Names of fonts that together have every character of a text, the default first.

    matplotlib takes each character from the first of them that has it.
    """
    manager = import_module("matplotlib.font_manager")
    missing = {c for c in text if not c.isspace()} - characters_of(font_path(DEFAULT))
    regular_first = sorted(manager.findSystemFonts(), key=lambda p: ("regular" not in p.lower(), p))
    families, others = [DEFAULT], iter(regular_first)
    while missing and (path := next(others, None)):
        if found := missing & characters_of(path):
            families.append(register_font(path))
            missing -= found
    if missing:
        raise GlassformerError(no_font_message(missing))
    return families


def font_path(family: str) -> str:
    """The file of a family that matplotlib knows."""
    return str(import_module("matplotlib.font_manager").findfont(family))


def register_font(path: str) -> str:
    """Register a font with matplotlib under its path, since fonts of one family differ.

    It may also be missing from the list that matplotlib caches.
    """
    manager = import_module("matplotlib.font_manager")
    if not any(known.name == path for known in manager.fontManager.ttflist):
        manager.fontManager.ttflist.append(manager.FontEntry(fname=path, name=path))
    return path


@cache
def characters_of(path: str) -> frozenset[str]:
    """The characters of a font; none if it cannot be read."""
    try:
        return frozenset(
            map(chr, import_module("matplotlib.font_manager").get_font(path).get_charmap())
        )
    except (RuntimeError, OSError):  # broken, or of an unsupported format
        return frozenset()


def no_font_message(missing: Iterable[str]) -> str:
    """The error message for characters that no font has."""
    some = sorted(missing)
    east_asian = any(unicodedata.name(c, "").startswith(EAST_ASIAN) for c in some)
    font = "Noto Sans CJK (fonts-noto-cjk)" if east_asian else "Noto Sans (fonts-noto)"
    shown = "".join(some[:SHOWN]) + ("…" if len(some) > SHOWN else "")
    return f"no font on this machine has {shown}; install one that does, such as {font}"
