"""A summary of many explanations: words that matter overall, and no stretches of sound."""

from dataclasses import replace

import pytest
import torch
from explained import transcript, translation

from glassformer.explaining.summary import summarise
from glassformer.runs.row_results import WordsRanked


def test_a_written_word_is_the_same_with_and_without_the_blank_before_it():
    first = translation()
    bare = tuple(replace(target, text=target.text.strip()) for target in first.targets)
    found = summarise([first, replace(first, targets=bare)], least=2)
    assert set(found.supporting) == {target.text for target in bare}
    value = torch.stack([first.influence[1], first.influence[1]]).mean(0).max().item()
    assert found.supporting["morning"][0].influence == pytest.approx(value)
    assert found.supporting["morning"][0].inputs == 2


def test_words_of_a_method_without_a_sign_have_no_side():
    first = replace(translation(), influence=translation().influence.abs())
    two_sides = WordsRanked(summarise([first] * 3))
    assert two_sides.header == ["", "for", "against"]
    [line] = [line for line in two_sides.lines() if line[0] == "morning"]
    assert line[1].startswith("早上 +")
    one_side = WordsRanked(summarise([replace(first, signed=False)] * 3))
    assert one_side.header == ["", "how much it matters"]
    [line] = [line for line in one_side.lines() if line[0] == "morning"]
    assert line[1].startswith("早上 0.")


def test_words_in_too_few_rows_are_counted_as_none():
    found = WordsRanked(summarise([translation()]))
    assert found.lines() == []
    assert found.sentences()[:2] == [
        "No word is in enough rows",
        "Words in fewer than 3 rows are left out",
    ]


def test_stretches_of_recordings_are_not_summed_up():
    found = summarise([transcript(), transcript()], least=1)
    assert (found.rows, found.supporting) == (2, {})
    assert "none matters overall" in WordsRanked(found).sentences()[0]
