"""A beam search step by step: which branches there were, and which one each continues.

The search itself keeps only paths; here one row is searched again, for a picture of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.beam import Search
from glassformer.decode.paths import Paths
from glassformer.decode.request import Request, row_limits
from glassformer.decode.scorer import Scorer, log_probabilities


@dataclass(frozen=True, kw_only=True, slots=True)
class BeamBranch:
    """A branch after one step.

    Attributes:
        tokens: What it has written, the end included.
        score: The sum of their log-probabilities.
        parent: The place of the branch that it continues in the step before; None at the first.
        ended: Whether it just ended.
    """

    tokens: tuple[int, ...]
    score: float
    parent: int | None
    ended: bool


@torch.no_grad()
def beam_steps(scorer: Scorer, request: Request, config: DecodeConfig) -> list[list[BeamBranch]]:
    """The branches of a single row after each step, best first: those that go on or just ended."""
    [limit], device = row_limits(scorer, request, config), scorer.first.device
    search = Search(request, config, [limit], device)
    state = scorer.begin(config.beam.width, limit)
    tokens = scorer.first[:, None].expand(-1, config.beam.width)
    before, steps = dict[tuple[int, ...], int](), list[list[BeamBranch]]()
    for step in range(limit):
        scores, state = scorer.step(tokens, state)
        tokens, parents = search.advance(step, log_probabilities(scores))
        branches = [
            BeamBranch(tokens=path, score=score, parent=before.get(path[:-1]), ended=ended)
            for ended in (False, True)
            for group in search.groups
            for path, score in written(group.finished if ended else group.live, step, ended=ended)
        ]
        branches.sort(key=lambda one: -one.score)
        steps.append(branches)
        if bool(search.done.all()):
            break
        before = {one.tokens: place for place, one in enumerate(branches) if not one.ended}
        state = state.reorder(parents)
    return steps


def written(paths: Paths, step: int, *, ended: bool) -> Iterator[tuple[tuple[int, ...], float]]:
    """What the branches of a row have written after a step, and their sums."""
    there = paths.total[0] > -torch.inf
    if ended:  # just now
        there &= paths.lengths[0] == step + 1
    for branch in there.nonzero()[:, 0].tolist():
        tokens = paths.tokens[0, branch, : step + 1].tolist()
        yield tuple(tokens), float(paths.scores[0, branch, : step + 1].sum())
