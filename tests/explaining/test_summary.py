"""Studies of many explanations: words or patches that matter overall, no stretches of sound."""

from dataclasses import replace

import pytest
import torch
from explained import review, transcript, translation

from glassformer.explaining.faithfulness import Faithfulness
from glassformer.explaining.parts import Image
from glassformer.explaining.summary import summarise
from glassformer.runs.row_results import MethodsCompared, WordsRanked


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
        "No words are in enough rows",
        "Words in fewer than 3 rows are left out",
    ]


def test_stretches_of_recordings_are_not_summed_up():
    found = summarise([transcript(), transcript()], least=1)
    assert (found.rows, found.supporting) == (2, {})
    assert "none matters overall" in WordsRanked(found).sentences()[0]


def test_patches_of_images_are_not_called_words():
    image = Image(pixels=torch.zeros(4, 6, 1, dtype=torch.uint8), rows=2, columns=3)
    patches = tuple(f"{row},{column} " for row in (1, 2) for column in (1, 2, 3))
    first = review()
    influence = torch.arange(6.0)[None] - 2
    shown = replace(first, pieces=patches, influence=influence, targets=first.targets[:1])
    found = WordsRanked(summarise([replace(shown, image=image)] * 3))
    assert found.title == "Patches that matter overall, in 3 rows"
    assert found.sentences()[:2] == [
        "Patches in fewer than 3 rows are left out",
        "Patches are named by row and column, from the top left",
    ]
    assert found.lines()[0][1].startswith("2,3 +3")


def test_faithfulness_speaks_of_inputs_whether_texts_or_images():
    found = MethodsCompared(Faithfulness(rows=9, methods={}))
    assert "word" not in " ".join([found.title, *found.header, *found.sentences()])
