"""A search that nobody waits for ends at its next step."""

import pytest
import torch

from glassformer.config.decoding import DecodeConfig
from glassformer.decode import Request, decode
from glassformer.decode.cancelling import SearchCancelledError, cancelled_when
from glassformer.decode.ctc import ctc_prefix_beam

STEPS = 3


class Nothing:
    def reorder(self, parents):
        return self

    def select_rows(self, rows):
        return self


class Counting:
    """Scores of seven tokens, and how often it was asked for them."""

    def __init__(self):
        self.first, self.steps = torch.zeros(2, dtype=torch.long), 0
        self.room, self.compact_below = None, 0.5

    def begin(self, branches, length):
        return Nothing()

    def step(self, tokens, state):
        self.steps += 1
        return torch.randn(*tokens.shape, 7), state


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
def test_a_cancelled_search_takes_no_further_step(method):
    scorer = Counting()
    config = DecodeConfig(method=method, max_length=29)
    with (
        cancelled_when(lambda: scorer.steps == STEPS),
        pytest.raises(SearchCancelledError),
    ):
        decode(scorer, Request(end=-1), config)
    assert scorer.steps == STEPS
    assert len(decode(scorer, Request(end=-1), config)) == 2  # nothing of it is left


def test_a_cancelled_prefix_beam_takes_no_further_frame():
    asked = []
    log_probs = torch.randn(2, 19, 5).log_softmax(-1)
    with (
        cancelled_when(lambda: asked.append(0) or len(asked) > STEPS),
        pytest.raises(SearchCancelledError),
    ):
        ctc_prefix_beam(log_probs, [19, 17], blank=0, width=3)
    assert len(asked) == STEPS + 1
