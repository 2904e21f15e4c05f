"""The steps of a beam search: every branch continues one before it, and the best is the answer."""

from itertools import pairwise

import pytest
from small_scorers import END, HashScorer

from glassformer.config.decoding import BeamConfig, DecodeConfig
from glassformer.decode import Request, decode
from glassformer.decode.beam_steps import beam_steps

ASK = Request(end=END)


def steps_of(groups=1, penalty="average"):
    beam = BeamConfig(width=6, penalty=penalty, groups=groups)
    config = DecodeConfig(method="beam", best=6, max_length=9, beam=beam)
    scorer = HashScorer(1, 7)
    return scorer, beam_steps(scorer, ASK, config), decode(HashScorer(1, 7), ASK, config)[0]


@pytest.mark.parametrize("groups", [1, 3])
def test_every_branch_continues_the_one_that_it_names(groups):
    _, steps, _ = steps_of(groups)
    assert all(one.parent is None for one in steps[0])
    for before, after in pairwise(steps):
        for one in after:
            assert before[one.parent].tokens == one.tokens[:-1]
            assert not before[one.parent].ended
            assert one.score <= before[one.parent].score


def test_branches_are_ranked_by_the_sums_of_their_log_probabilities():
    scorer, steps, _ = steps_of()
    for step in steps:
        assert [one.score for one in step] == sorted((one.score for one in step), reverse=True)
        for one in step:
            assert one.score == pytest.approx(
                sum(scorer.log_probabilities(0, one.tokens)), abs=1e-4
            )


@pytest.mark.parametrize("penalty", ["none", "average"])
def test_the_answers_are_among_the_branches_that_end(penalty):
    _, steps, answers = steps_of(penalty=penalty)
    ended = {one.tokens: one.score for step in steps for one in step if one.ended}
    for answer in answers:
        tokens = (*answer.tokens, END) if answer.reason == "end" else answer.tokens
        assert ended[tokens] == pytest.approx(answer.log_probability, abs=1e-4)
