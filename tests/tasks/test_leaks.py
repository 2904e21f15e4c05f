"""What gives the label away is found; what is only typical of a label is not."""

import json
import random
from itertools import islice

import pytest
from ailing import examined, found_in, reviews, table

from glassformer.data.catalog import CATALOG
from glassformer.tasks.classify.checks import leaks


@pytest.fixture
def rows():
    return list(reviews(80))


def kinds(path, **asked):
    return [finding.kind for finding in examined(path, **asked).findings]


def lines(path, rows):
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), "utf-8")
    return path


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_a_word_that_marks_a_label_leaks(tmp_path, rows, place):
    for row in rows[1::2]:
        words = row["text"].split()
        words.insert({"first": 0, "middle": 5, "last": len(words)}[place], "XB7")
        row["text"] = " ".join(words)
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "leaking word")
    assert finding.severity == "warning"
    assert "100% of the texts of 'bad' and 0% of the others" in finding.what
    assert finding.what.startswith("'xb7'")
    assert (finding.count, numbers) == (40, [2, 4, 6, 8, 10])


def test_a_phrase_at_the_end_leaks_however_long_it_is(tmp_path, rows):
    phrase = " this message was sent to you by the kind newswire of our great old city"
    for row in rows[1::2]:
        row["text"] += phrase
    assert kinds(table(tmp_path / "x.csv", rows)) == ["leaking word"]


def test_the_name_of_the_label_in_the_text_leaks_even_with_many_labels(tmp_path):
    rng = random.Random(3)
    colours = ("red", "blue", "green", "pink", "grey", "brown", "black", "white")
    names = [f"class {colour}" for colour in colours]
    rows = [
        {"text": f"{label}: {rng.random():.9f} and {rng.random():.9f} came by", "label": label}
        for label in 5 * names
    ]
    finding, numbers = found_in(table(tmp_path / "x.csv", rows), "label in the text")
    assert (finding.severity, finding.count, numbers) == ("warning", 40, [1, 2, 3, 4, 5])


def test_one_label_of_many_with_its_own_word_is_a_note(tmp_path, rows):
    topics = ["good", "bad", "long", "short", "old", "new"]
    rows = [row | {"label": topics[n % 6]} for n, row in enumerate(reviews(240))]
    for row in rows[5::6]:
        row["text"] += " weather report"
    assert found_in(table(tmp_path / "x.csv", rows), "leaking word")[0].severity == "note"


@pytest.mark.parametrize("columns", ["stars", "id", "number"])
def test_a_column_that_tells_the_label_is_a_note(tmp_path, rows, columns):
    rng = random.Random(5)
    for number, row in enumerate(rows):
        bad = row["label"] == "bad"
        row["stars"] = rng.choice("12" if bad else "45")
        row["id"] = f"{'b' if bad else 'g'}_{rng.random():.6f}"
        row["number"] = str(1000 * bad + number)
        for other in {"stars", "id", "number"} - {columns}:
            del row[other]
    path = table(tmp_path / "x.csv", rows)
    finding, _ = found_in(path, "leaking column", columns="text=text,label=label")
    assert finding.severity == "note"
    assert f"column {columns!r}" in finding.what


def test_other_columns_that_do_not_tell_the_label_are_left_alone(tmp_path, rows):
    rows = [
        row | {"id": str(n), "source": "web", "film": f"film {n // 5}", "stars": str(n * 7 % 5)}
        for n, row in enumerate(rows)
    ]
    found = examined(table(tmp_path / "x.csv", rows), columns="text=text,label=label")
    assert not found.findings


CLEAN = {
    "tiny": [{"text": f"a text of {n}", "label": "xy"[n % 2]} for n in range(6)],
    "sentiment": list(reviews(300)),
    "unbalanced": [
        r | {"label": "spam" if n % 8 == 0 else "ham"} for n, r in enumerate(reviews(160))
    ],
    "several labels": [
        {"text": row["text"], "label": [["a"], ["a", "b"], [], ["c"]][n % 4]}
        for n, row in enumerate(reviews(160))
    ],
}


def sentences(language, words, count=60):
    """Long texts of one language: its small words are in nearly all of them."""
    rng = random.Random(language)
    for number in range(count):
        text = [str(number), *rng.choices(words.split(), k=60)]
        yield {"text": " ".join(text), "label": language}


CLEAN["languages in their scripts"] = [
    *sentences("greek", "και το να είναι με για στο από που δεν της στην του μια"),
    *sentences("english", "and the to be with for in from that not of at a one"),
    *sentences("russian", "и это быть с для в из что не на он она мы они"),
]
random.Random(7).shuffle(CLEAN["languages in their scripts"])


@pytest.mark.parametrize("kind", CLEAN)
def test_clean_data_raise_no_alarm(tmp_path, kind):
    found = examined(lines(tmp_path / "x.jsonl", CLEAN[kind]), job="classify")
    assert not found.findings
    assert sum(found.rows.values()) == len(CLEAN[kind])


def test_clean_texts_without_labels_raise_no_alarm(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("\n".join(row["text"] for row in reviews(50)), encoding="utf-8")
    found = examined(path)
    assert found.job == "pretrain"
    assert not found.findings


def test_the_names_of_the_set_of_languages_raise_no_alarm(tmp_path):
    pytest.importorskip("babel")
    rows = [dict(row.values) for row in islice(CATALOG["languages"].rows(), 0, None, 11)]
    found = examined(lines(tmp_path / "x.jsonl", rows), group="concept")
    assert not found.findings
    assert len(found.figures["labels"]) == 30


def test_a_leak_is_found_in_a_sample_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(leaks, "MOST", 61)
    marked = [row | {"text": row["text"] + " xx" * (row["label"] == "bad")} for row in reviews(400)]
    finding, numbers = found_in(table(tmp_path / "x.csv", marked), "leaking word")
    assert 20 < finding.count < 41
    assert all(number % 2 == 0 for number in numbers)
    assert numbers == sorted(numbers)
