"""Texts to learn by heart: repetition and what is no text are told by row."""

import json
import random

import pytest
from ailing import OTHER, examined, found_in

WORDS = [*OTHER, "house", "river", "green", "cold", "night", "walks", "over", "under", "hill"]


def texts(count=40, words=60):
    rng = random.Random(3)
    return [" ".join(rng.choices(WORDS, k=words)) + f" {n}" for n in range(count)]


def lines(path, rows):
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in rows))
    return path


def kinds(path):
    return {finding.kind for finding in examined(path, job="generate").findings}


def test_healthy_texts_are_all_clear(tmp_path):
    assert kinds(lines(tmp_path / "x.jsonl", texts())) == set()


@pytest.mark.parametrize("changed", [1, 30])
def test_texts_that_nearly_repeat_another_are_told(tmp_path, changed):
    rows = texts()
    words = rows[4].split()
    for place in range(changed):
        words[2 * place] = f"new{place}"
    rows[20] = " ".join(words)
    path = lines(tmp_path / "x.jsonl", rows)
    if changed == 1:
        finding, numbers = found_in(path, "near duplicates", job="generate")
        assert (finding.count, numbers) == (1, [21])
        assert "1 text (2.5%) that nearly repeats an earlier one" in finding.what
    else:
        assert kinds(path) == set()


def test_equal_texts_are_duplicates_and_not_near_ones(tmp_path):
    rows = texts()
    rows[20] = rows[4].upper()
    assert kinds(lines(tmp_path / "x.jsonl", rows)) == {"duplicate rows"}


def test_lines_that_stand_in_many_texts_are_told(tmp_path):
    rows = texts()
    for number in range(0, 40, 2):
        rows[number] += "\n  Subscribe to our newsletter!"
    finding, numbers = found_in(lines(tmp_path / "x.jsonl", rows), "boilerplate", job="generate")
    assert "'Subscribe to our newsletter!' is in 20" in finding.what
    assert numbers == [19]  # the tenth


def test_lines_of_equal_texts_are_no_boilerplate_and_rows_are_told_in_order_and_once(tmp_path):
    rows = [*texts(), *["a text that is repeated\nSubscribe to our newsletter!"] * 15]
    assert "boilerplate" not in kinds(lines(tmp_path / "x.jsonl", rows))
    rows = texts()
    for number in range(30):
        rows[number] += "\n  Subscribe to our newsletter!"
    for number in range(5, 25):
        rows[number] += "\nAll rights reserved by everyone\nPrinted by the printers of this town"
    finding, numbers = found_in(lines(tmp_path / "x.jsonl", rows), "boilerplate", job="generate")
    assert finding.what.startswith("3 lines")
    assert numbers == [10, 15]


def test_a_line_without_words_at_the_end_of_a_file_is_no_empty_text(tmp_path):
    (tmp_path / "x.txt").write_text("one line of text, ok\n")
    assert kinds(tmp_path / "x.txt") == set()


def test_very_long_lines_are_told(tmp_path):
    rows = texts()
    rows[7] += "\n" + "x" * 10_001
    finding, numbers = found_in(lines(tmp_path / "x.jsonl", rows), "long lines", job="generate")
    assert numbers == [8]
    assert finding.what.endswith("the longest has 10,001")
    (tmp_path / "whole.txt").write_text("x " * 20_000)
    finding, numbers = found_in(tmp_path / "whole.txt", "long lines", job="generate")
    assert finding.what.startswith("1 text with a line of more than 10,000 characters")
    assert finding.what.endswith("the longest has 40,000")
    assert (finding.count, numbers) == (1, [1])
    (tmp_path / "lines.txt").write_text(("x" * 5_000 + "\n") * 20)
    assert "long lines" not in kinds(tmp_path / "lines.txt")
    (tmp_path / "other.txt").write_text(
        "a short line\n" * 3_000 + "x " * 6_000 + "\n" + "y" * 10_500
    )
    finding, numbers = found_in(tmp_path / "other.txt", "long lines", job="generate")
    assert finding.count == 1
    assert finding.what.endswith("the longest has 12,000")


def test_another_script_and_another_language_are_told(tmp_path):
    rows = texts(150)
    rows[3] = "это совсем другой язык и другая письменность, не как остальные тексты"
    rows[4] = "und dies ist noch mal eine andere Schrift"
    rows[5] = rows[3] + " ещё"
    rows[9] = "der schnelle braune Fuchs springt jetzt wieder über den faulen Hund hinweg"
    path = lines(tmp_path / "x.jsonl", rows)
    _, numbers = found_in(path, "language mix", job="generate")
    assert {4, 6} <= {*numbers}
    assert 10 in numbers
    assert examined(path, job="generate").figures["texts by script"]["Cyrillic"] == 2


def test_texts_in_two_languages_of_one_script_are_told(tmp_path):
    english, german = "the a of and in with to is", "der ein von und im mit zu ist"
    rng = random.Random(5)
    rows = [
        " ".join(
            [*rng.choices((german if n % 3 == 2 else english).split(), k=9), f"word{n} x{n % 7}"]
        )
        for n in range(180)
    ]
    finding, numbers = found_in(lines(tmp_path / "x.jsonl", rows), "two languages", job="generate")
    assert finding.count == 60
    assert finding.what.startswith("texts in two languages: about 33% with words such as ")
    assert numbers == [3, 6, 9, 12, 15]
