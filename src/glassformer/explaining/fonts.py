"""Fonts with the characters of a text, for pictures by matplotlib."""

import unicodedata
from collections.abc import Iterable
from importlib import import_module

from glassformer.errors import GlassformerError

DEFAULT = "DejaVu Sans"  # ships with matplotlib
EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH")
SHOWN = 12  # missing characters listed in an error


def families_for(text: str) -> list[str]:
    """Names of fonts that together have every character of a text, the default first.

    matplotlib takes each character from the first of them that has it.
    """
    manager = import_module("matplotlib.font_manager")
    missing = {c for c in text if not c.isspace()} - characters_of(manager.findfont(DEFAULT))
    families, others = [DEFAULT], iter(sorted(manager.findSystemFonts(), key=regular_first))
    while missing and (path := next(others, None)):
        if found := missing & characters_of(path):
            families.append(register_font(path))
            missing -= found
    if missing:
        raise GlassformerError(no_font_message(missing))
    return families


def regular_first(path: str) -> tuple[bool, str]:
    """A sort key that puts regular fonts before bold and italic ones."""
    return "regular" not in path.lower(), path


def register_font(path: str) -> str:
    """Register a font with matplotlib under its path, since fonts of one family differ.

    It may also be missing from the list that matplotlib caches.
    """
    manager = import_module("matplotlib.font_manager")
    if not any(known.name == path for known in manager.fontManager.ttflist):
        manager.fontManager.ttflist.append(manager.FontEntry(fname=path, name=path))
    return path


def characters_of(path: str) -> set[str]:
    """The characters of a font; none if it cannot be read."""
    try:
        return set(map(chr, import_module("matplotlib.font_manager").get_font(path).get_charmap()))
    except (RuntimeError, OSError):  # broken, or of an unsupported format
        return set()


def no_font_message(missing: Iterable[str]) -> str:
    """The error message for characters that no font has."""
    some = sorted(missing)
    east_asian = any(unicodedata.name(c, "").startswith(EAST_ASIAN) for c in some)
    font = "Noto Sans CJK (fonts-noto-cjk)" if east_asian else "Noto Sans (fonts-noto)"
    shown = "".join(some[:SHOWN]) + ("…" if len(some) > SHOWN else "")
    return f"no font on this machine has {shown}; install one that does, such as {font}"
