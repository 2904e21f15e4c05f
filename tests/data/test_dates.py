"""The dates on board: every text means one date, in many languages, scripts and habits."""

import builtins
import collections
import unicodedata
from datetime import date

import pytest

from glassformer.config import DataConfig
from glassformer.data.catalog import dates, open_entry
from glassformer.data.catalog.date_forms import ZEROS, forms_of
from glassformer.data.catalog.dates import DAYS, LANGUAGES, WAYS, written
from glassformer.data.ingest import ingest
from glassformer.data.samples import SPLITS
from glassformer.errors import GlassformerError
from glassformer.tasks.translate.data import TranslateSchema

FEWER = 1511  # dates than there are, for speed


@pytest.fixture(scope="module")
def made():
    return written(FEWER)


@pytest.fixture(scope="module")
def forms():
    return {code: forms_of(code) for code in LANGUAGES}


def test_there_are_rows_enough_in_every_language(made):
    assert 20_000 < len(made) / FEWER * DAYS < 40_000
    counts = collections.Counter(row["language"] for row in made)
    assert counts.keys() == {*LANGUAGES.values()}
    assert len(counts) >= 25
    assert min(counts.values()) > 60


def test_targets_are_days_from_1900_to_2099(made):
    days = [date.fromisoformat(row["target"]) for row in made]
    assert min(days).year == 1900
    assert max(days).year == 2099
    assert {day.month for day in days} == {*range(1, 13)}
    assert {day.day for day in days} == {*range(1, 32)}


def test_a_text_means_one_date_and_what_does_not_is_left_out(made):
    assert len({row["source"] for row in made}) == len(made) < FEWER * WAYS - 100


def test_it_is_the_same_at_every_call(monkeypatch):
    monkeypatch.setattr(dates, "DAYS", 211)
    rows = list(open_entry("dates").rows())
    assert [dict(row.values) for row in rows] == written(211)
    assert rows[6].where == "dates row 7"


def test_a_date_that_is_held_out_is_never_seen(monkeypatch, tmp_path):
    monkeypatch.setattr(dates, "DAYS", 499)
    samples, taken = ingest(DataConfig(files=("dates",)), TranslateSchema(), tmp_path)
    days = [{*samples.texts(part, "target")} for part in SPLITS]
    assert len(days[0] | days[1] | days[2]) == sum(map(len, days))
    assert min(taken.counts.values()) > 100
    assert sum(taken.counts.values()) == len(written(499))
    assert not taken.skipped


def test_numbers_that_could_change_places_are_no_form(forms):
    short = next(form for form in forms["en"] if form.name == "short")
    assert short.write(date(2005, 3, 14)) == "3/14/2005"
    assert short.is_clear(date(2005, 3, 14))
    assert short.is_clear(date(2005, 3, 3))
    assert not short.is_clear(date(2005, 3, 4))
    swedish = next(form for form in forms["sv"] if form.name == "short")
    assert (swedish.write(date(2005, 3, 4)), swedish.is_clear(date(2005, 3, 4))) == (
        "2005-03-04",
        True,
    )


def test_no_two_months_are_written_alike_in_any_language(forms):
    meanings = collections.defaultdict(set)
    for month in range(1, 13):
        day = date(2005, month, 14)
        for form in (form for some in forms.values() for form in some):
            meanings[form.write(day).casefold()].add(day)
    assert len(meanings) > 4000
    assert not {text: days for text, days in meanings.items() if len(days) > 1}


@pytest.mark.parametrize(
    ("code", "name", "text"),
    [
        ("de", "full", "Freitag, 4. März 2005"),
        ("de", "medium", "04.03.2005"),
        ("fr", "yMMMEd", "ven. 4 mars 2005"),
        ("pl", "yMMMMd", "4 marca 2005"),
        ("bg", "long", "4 март 2005 г."),
        ("ar", "long, native digits", "٤ مارس ٢٠٠٥"),
        ("hi", "long, native digits", "४ मार्च २००५"),
        ("th", "medium, native digits", "๔ มี.ค. ๒๐๐๕"),
        ("th", "Buddhist year", "4 มีนาคม พ.ศ. 2548"),
        ("ja", "emperor's year", "平成17年3月4日"),
        ("zh", "in characters", "二〇〇五年三月四日"),
        ("pl", "Roman month", "4 III 2005"),
        ("en", "ordinal first", "4th of March 2005"),
    ],
)
def test_languages_write_dates_in_their_own_ways(forms, code, name, text):
    (form,) = (form for form in forms[code] if form.name == name)
    assert form.write(date(2005, 3, 4)) == text


def test_every_form_tells_the_whole_year(forms):
    day = date(1987, 11, 23)
    years = {"1987", "2530", "62", "一九八七"}
    for form in (form for some in forms.values() for form in some):
        text = "".join(
            str(unicodedata.decimal(character, character)) for character in form.write(day)
        )
        assert any(year in text for year in years), form.name


def test_rows_come_in_many_scripts_digits_and_cases(made):
    texts = [row["source"] for row in made]
    for zero in ZEROS.values():
        assert sum(any(zero <= c <= chr(ord(zero) + 9) for c in text) for text in texts) > 20
    assert sum(text.isupper() for text in texts) > 100
    assert not any(unicodedata.category(c) == "Cf" for text in texts for c in text)
    assert all(text == " ".join(text.split(" ")) for text in texts)


def test_dates_without_babel_say_what_to_install(monkeypatch):
    real = builtins.__import__

    def without_babel(name, *rest):
        if name.split(".")[0] == "babel":
            raise ImportError(name)
        return real(name, *rest)

    forms_of.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_babel)
    with pytest.raises(GlassformerError, match=r"pip install 'glassformer\[embedded\]'"):
        next(open_entry("dates").rows())
