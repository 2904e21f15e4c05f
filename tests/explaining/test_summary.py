"""A summary of many explanations: words that matter overall, and no stretches of sound."""

from dataclasses import replace

import pytest
import torch
from explained import transcript, translation

from glassformer.cli.explain_rows import show_summary
from glassformer.explaining.summary import summarise


def test_a_written_word_is_the_same_with_and_without_the_blank_before_it():
    first = translation()
    bare = tuple(replace(target, text=target.text.strip()) for target in first.targets)
    found = summarise([first, replace(first, targets=bare)], least=2)
    assert set(found.supporting) == {target.text for target in bare}
    value = torch.stack([first.influence[1], first.influence[1]]).mean(0).max().item()
    assert found.supporting["morning"][0].influence == pytest.approx(value)
    assert found.supporting["morning"][0].inputs == 2


def test_stretches_of_recordings_are_not_summed_up(capsys):
    found = summarise([transcript(), transcript()], least=1)
    assert (found.rows, found.supporting) == (2, {})
    show_summary(found)
    assert "none matters overall" in capsys.readouterr().out
