"""Fonts that have the characters of a text, for pictures by matplotlib."""

import unicodedata
from collections.abc import Iterable
from importlib import import_module

from glassformer.errors import GlassformerError

USUAL = "DejaVu Sans"  # comes with matplotlib
EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH")
SHOWN = 12  # characters that a message names


def families_for(text: str) -> list[str]:
    """Names of fonts that together have every character of a text, the usual one first.

    matplotlib takes each character from the first of them that has it.
    """
    manager = import_module("matplotlib.font_manager")
    missing = {c for c in text if not c.isspace()} - characters_of(manager.findfont(USUAL))
    families, others = [USUAL], iter(sorted(manager.findSystemFonts(), key=regular_first))
    while missing and (path := next(others, None)):
        if found := missing & characters_of(path):
            families.append(named(path))
            missing -= found
    if missing:
        raise GlassformerError(lacking(missing))
    return families


def regular_first(path: str) -> tuple[bool, str]:
    """Bold and slanted ones come later."""
    return "regular" not in path.lower(), path


def named(path: str) -> str:
    """Make a font known to matplotlib by its path: the fonts of a family differ in what they have.

    It may also be newer than the list that matplotlib keeps.
    """
    manager = import_module("matplotlib.font_manager")
    if not any(known.name == path for known in manager.fontManager.ttflist):
        manager.fontManager.ttflist.append(manager.FontEntry(fname=path, name=path))
    return path


def characters_of(path: str) -> set[str]:
    """The characters a font has; none where it cannot be read."""
    try:
        return set(map(chr, import_module("matplotlib.font_manager").get_font(path).get_charmap()))
    except (RuntimeError, OSError):  # broken, or of a kind matplotlib does not read
        return set()


def lacking(missing: Iterable[str]) -> str:
    """The sentence for characters that no font has."""
    some = sorted(missing)
    east_asian = any(unicodedata.name(c, "").startswith(EAST_ASIAN) for c in some)
    font = "Noto Sans CJK (fonts-noto-cjk)" if east_asian else "Noto Sans (fonts-noto)"
    shown = "".join(some[:SHOWN]) + ("…" if len(some) > SHOWN else "")
    return f"no font on this machine has {shown}; install one that has, such as {font}"
