"""The languages of embedded sets, and what Babel knows of them: the Unicode locale data (CLDR)."""

from typing import TYPE_CHECKING

from glassformer.errors import GlassformerError, install

if TYPE_CHECKING:
    from babel import Locale

_NAMES = """
ar Arabic, bg Bulgarian, bn Bangla, ca Catalan, cs Czech, da Danish, de German, el Greek, en
English, es Spanish, et Estonian, eu Basque, fa Persian, fi Finnish, fr French, gl Galician, he
Hebrew, hi Hindi, hr Croatian, hu Hungarian, id Indonesian, is Icelandic, it Italian, ja
Japanese, ko Korean, lt Lithuanian, lv Latvian, mr Marathi, nb Norwegian, nl Dutch, pl Polish,
pt Portuguese, ro Romanian, ru Russian, sk Slovak, sl Slovenian, sv Swedish, ta Tamil, te
Telugu, th Thai, tr Turkish, uk Ukrainian, vi Vietnamese, zh Chinese
"""
NAMES: dict[str, str] = dict(pair.split() for pair in _NAMES.split(","))  # by code


def locale_of(code: str) -> "Locale":
    """What Babel knows of a language."""
    try:
        from babel import Locale
    except ImportError:
        raise GlassformerError(
            "this set is made from the locale data in Babel, which is not installed; "
            f"{install('embedded')}"
        ) from None
    return Locale.parse(code)
