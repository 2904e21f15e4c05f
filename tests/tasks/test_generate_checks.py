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


def test_very_long_lines_are_told(tmp_path):
    rows = texts()
    rows[7] += "\n" + "x" * 10_001
    finding, numbers = found_in(lines(tmp_path / "x.jsonl", rows), "long lines", job="generate")
    assert numbers == [8]
    assert finding.what.endswith("the longest has 10,001")
    (tmp_path / "whole.txt").write_text("x " * 20_000)
    finding, _ = found_in(tmp_path / "whole.txt", "long lines", job="generate")
    assert finding.what.endswith("the longest has 16,400 or more")  # as far as a section goes


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
