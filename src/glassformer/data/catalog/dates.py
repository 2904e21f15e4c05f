"""Dates as people write them in many languages, to be written as ISO 8601: `4. März 2005`.

Made from the Unicode locale data (CLDR) that ships with Babel, the same at every call. Each date is
written in a few languages, and all its rows share the column `date`, so that a held-out date was
never seen. A text shared by two dates is left out, as is an ambiguous one, and one that is
repeated, ignoring case.
"""

import random
from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta

from glassformer.data.catalog.date_forms import Form, forms_of
from glassformer.data.catalog.locales import NAMES
from glassformer.data.catalog.storage import Entry
from glassformer.data.rows import Row
from glassformer.data.splits import content_key

LANGUAGES = {code: name for code, name in NAMES.items() if code != "gl"}
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
DAYS = 9_000
WAYS = 4  # in which each date is written
SHOUTED, WHISPERED = 0.05, 0.05  # shares of texts in capitals, and without them
DOTTED = "tr"  # where capital and small letters do not pair as elsewhere


def rows() -> Iterator[Row]:
    """Dates and their ISO form, in a random order of dates."""
    for number, values in enumerate(written(DAYS), start=1):
        yield Row(values, "dates", number)


def written(days: int) -> list[dict[str, str]]:
    """The rows of `days` dates."""
    rng = random.Random(0)
    forms = {code: forms_of(code) for code in LANGUAGES}
    drawn = rng.sample(range((LAST - FIRST).days + 1), days)
    drafts: list[tuple[str, str, str]] = []
    for day in (FIRST + timedelta(days=number) for number in drawn):
        for code in rng.sample(sorted(LANGUAGES), WAYS):
            form = rng.choice(forms[code])
            text = write_date(day, form, code, rng)
            if form.is_clear(day):
                drafts.append((text, day.isoformat(), LANGUAGES[code]))
    meanings: defaultdict[str, set[str]] = defaultdict(set)
    for text, iso, _ in drafts:
        meanings[content_key(text)].add(iso)
    found: dict[str, dict[str, str]] = {}
    for text, iso, language in drafts:
        values = {"source": text, "target": iso, "language": language, "date": iso, "split": ""}
        if len(meanings[content_key(text)]) == 1:
            found.setdefault(content_key(text), values)
    return list(found.values())


def write_date(day: date, form: Form, code: str, rng: random.Random) -> str:
    """A date in a form, sometimes in upper or lower case."""
    text, chance = form.write(day), rng.random()
    if code == DOTTED or chance >= SHOUTED + WHISPERED:
        return text
    return text.upper() if chance < SHOUTED else text.lower()


DATES = Entry(
    name="dates",
    what=f"dates as written in {len(LANGUAGES)} languages, to ISO 8601; built in, made from Babel",
    licence="Unicode License v3 (CLDR)",
    source="https://cldr.unicode.org, through https://babel.pocoo.org",
    rows=rows,
    group="date",
)
