"""How people write a date, language by language: the formats of CLDR, and habits it does not list.

A form must determine the date from the text alone. So years have all their digits, and `3/4/2005`,
which is in March or in April, is used only for dates where the other reading is impossible or the
same.
"""

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import TYPE_CHECKING

from glassformer.data.catalog.locales import locale_of

if TYPE_CHECKING:
    from babel import Locale

Write = Callable[[date], str]

TIMES = set("HhKkmsSzZvVBjJabQqwW")  # pattern fields that are not part of a date
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
HAN = "〇一二三四五六七八九"
# The zero of each script's digits; the other nine follow it.
ZEROS = {
    "arab": "٠",
    "arabext": "۰",
    "beng": "০",
    "deva": "०",
    "tamldec": "௦",
    "telu": "౦",
    "thai": "๐",
}
ERAS = {  # of Japan, by first day; a year counts from the first of its era
    date(2019, 5, 1): "令和",
    date(1989, 1, 8): "平成",
    date(1926, 12, 25): "昭和",
    date(1912, 7, 30): "大正",
    date(1868, 10, 23): "明治",
}


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write a date.

    Attributes:
        name: The name of the format in CLDR, or of the habit.
        by_numbers: Whether day and month are numbers that could be confused.
    """

    name: str
    write: Write
    by_numbers: bool = False

    def is_clear(self, day: date) -> bool:
        """Whether this date, so written, can be read in one way only."""
        return not self.by_numbers or day.day > 12 or day.day == day.month


@cache
def forms_of(code: str) -> tuple[Form, ...]:
    """The forms of a language: full to short, skeletons, both again in native digits, habits."""
    locale = locale_of(code)
    patterns = {name: pattern.pattern for name, pattern in locale.date_formats.items()}
    for name, skeleton in locale.datetime_skeletons.items():
        if {*name} >= {"y", "M", "d"} and not {*name} & TIMES:
            patterns[name] = skeleton.pattern
    found = [_form(name, pattern, locale) for name, pattern in patterns.items()]
    found += [Form(name, write) for name, write in HABITS.get(code, {}).items()]
    zero = ZEROS.get(locale.other_numbering_systems.get("native", ""))
    if zero:
        digits = {ord("0") + n: chr(ord(zero) + n) for n in range(10)}
        found += [_in_digits(form, digits) for form in found]
    return tuple(found)


def _form(name: str, pattern: str, locale: "Locale") -> Form:
    """A pattern with all digits of the year, and blanks as people type them."""
    from babel.dates import parse_pattern

    full = parse_pattern(re.sub("(?<!y)yy(?!y)", "y", pattern))

    def write(day: date) -> str:
        return _typed(full.apply(day, locale))

    fields = re.sub("'[^']*'", "", pattern)
    order = "".join(dict.fromkeys(re.findall("[yMLd]", fields)))
    named = re.search("MMM|LLL|[Ec]", fields)  # by a weekday, too, a date is checked
    return Form(name, write, by_numbers=not named and not order.startswith("yM"))


def _in_digits(form: Form, digits: dict[int, str]) -> Form:
    def write(day: date) -> str:
        return form.write(day).translate(digits)

    return Form(f"{form.name}, native digits", write, form.by_numbers)


def _typed(text: str) -> str:
    """With plain blanks, and without the marks that only steer the direction of writing."""
    kept = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFC", " ".join(kept.split()))


def ordinal(number: int) -> str:
    """As in English.

    >>> ordinal(1), ordinal(12), ordinal(23)
    ('1st', '12th', '23rd')
    """
    suffix = "th" if number in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def han_number(number: int) -> str:
    """Up to 99, as in Chinese.

    >>> han_number(4), han_number(14), han_number(30)
    ('四', '十四', '三十')
    """
    tens, ones = divmod(number, 10)
    return ("" if tens < 2 else HAN[tens]) + ("十" if tens else "") + (HAN[ones] if ones else "")


def japanese(day: date) -> str:
    """By the years of the emperor.

    >>> japanese(date(2019, 5, 1)), japanese(date(1985, 3, 4))
    ('令和元年5月1日', '昭和60年3月4日')
    """
    first, era = next((first, era) for first, era in ERAS.items() if day >= first)
    year = day.year - first.year + 1
    return f"{era}{'元' if year == 1 else year}年{day.month}月{day.day}日"


def in_han(day: date) -> str:
    """In characters only, as on documents."""
    year = "".join(HAN[int(digit)] for digit in str(day.year))
    return f"{year}年{han_number(day.month)}月{han_number(day.day)}日"


def buddhist(day: date) -> str:
    """By the years since the Buddha, as in Thailand."""
    months = locale_of("th").months["format"]["wide"]
    return f"{day.day} {months[day.month]} พ.ศ. {day.year + 543}"


def english(day: date) -> str:
    """As in March."""
    return str(locale_of("en").months["format"]["wide"][day.month])


HABITS: dict[str, dict[str, Write]] = {
    "en": {
        "ordinal first": lambda day: f"{ordinal(day.day)} of {english(day)} {day.year}",
        "ordinal second": lambda day: f"{english(day)} {ordinal(day.day)}, {day.year}",
    },
    "hu": {"Roman month": lambda day: f"{day.year}. {ROMAN[day.month - 1]}. {day.day}."},
    "pl": {"Roman month": lambda day: f"{day.day} {ROMAN[day.month - 1]} {day.year}"},
    "ja": {"emperor's year": japanese},
    "th": {"Buddhist year": buddhist},
    "zh": {"in characters": in_han},
}
