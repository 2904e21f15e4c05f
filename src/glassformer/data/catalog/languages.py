"""Which language a name belongs to: names of places, languages, currencies ... in 30 languages.

Made from the Unicode locale data (CLDR) that ships with Babel. Many of the languages are close
relatives, so the alphabet alone does not tell. Ambiguous cases are left out: a name
that two of the languages share, which also removes names left in English, a bare code, a name with
digits or of one or two letters.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from glassformer.data.catalog.locales import NAMES, locale_of
from glassformer.data.catalog.storage import Entry
from glassformer.data.rows import Row

if TYPE_CHECKING:
    from babel import Locale

_CODES = "bg ca cs da de en es et eu fi fr gl hr hu id is it lt lv nb nl pl pt ro ru sk sl sv tr vi"
CODES = _CODES.split()

FEWEST_LETTERS = 3
Named = Iterable[tuple[Any, str]]  # codes and names


def rows() -> Iterator[Row]:
    """Each name once, with its language and what it names; translations side by side."""
    found = sorted(
        (concept, code, name) for code in CODES for concept, name in _names(locale_of(code))
    )
    languages: defaultdict[str, set[str]] = defaultdict(set)
    for _, code, name in found:
        languages[_key(name)].add(code)
    number = 0
    for concept, code, name in found:
        if len(languages.pop(_key(name), ())) == 1:  # popped: a name comes once
            number += 1
            columns = {"text": name, "label": NAMES[code], "split": "", "concept": concept}
            yield Row(columns, "languages", number)


def _names(locale: "Locale") -> Iterator[tuple[str, str]]:
    """Concepts and their names; variants of one language ("en", "en_GB") are one concept."""
    for what, named in SECTIONS.items():
        for code, name in named(locale):
            kind = str(code).split("_")[0] if what == "language" else str(code)
            letters = sum(character.isalpha() for character in name)
            digits = any(character.isdigit() for character in name)
            if letters >= FEWEST_LETTERS and not digits and _key(name) != _key(str(code)):
                yield f"{what} {kind}", unicodedata.normalize("NFC", name)


def _wide(contexts: Mapping[str, Mapping[str, Mapping[Any, str]]]) -> Named:
    """Unabbreviated names, as they stand alone and as they stand in a date."""
    return [pair for widths in contexts.values() for pair in widths.get("wide", {}).items()]


def _of(key: str, entries: Mapping[str, Mapping[str, Any]]) -> Named:
    return [
        (code, entry[key]) for code, entry in entries.items() if isinstance(entry.get(key), str)
    ]


def _key(name: str) -> str:
    """Names are the same if only case or the way accents are stored differs."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


SECTIONS: dict[str, Callable[["Locale"], Named]] = {
    "territory": lambda locale: locale.territories.items(),
    "language": lambda locale: locale.languages.items(),
    "script": lambda locale: locale.scripts.items(),
    "currency": lambda locale: locale.currencies.items(),
    "city": lambda locale: _of("city", locale.time_zones),
    "unit": lambda locale: _of("long", locale.unit_display_names),
    "month": lambda locale: _wide(locale.months),
    "day": lambda locale: _wide(locale.days),
    "part of the day": lambda locale: _wide(locale.day_periods),
    "quarter": lambda locale: _wide(locale.quarters),
    "era": lambda locale: locale.eras["wide"].items(),
}

LANGUAGES = Entry(
    name="languages",
    what="which of 30 languages a name or word belongs to; built in, made from Babel",
    licence="Unicode License v3 (CLDR)",
    source="https://cldr.unicode.org, through https://babel.pocoo.org",
    rows=rows,
    group="concept",
)
