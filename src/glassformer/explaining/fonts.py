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
    families = [USUAL]
    for path in sorted(manager.findSystemFonts()) if missing else ():
        if found := missing & characters_of(path):
            manager.fontManager.addfont(path)  # it may be newer than the list matplotlib keeps
            families.append(manager.get_font(path).family_name)
            missing -= found
    if missing:
        raise GlassformerError(lacking(missing))
    return families


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
