"""Paths: what was written so far along every branch, and the answers they become."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decode.best import top

Reason = Literal["end", "length", "stop"]
REASONS: tuple[Reason, ...] = ("end", "length", "stop")
END, LENGTH, STOP = range(len(REASONS))
GOES_ON, STUCK = -1, -2  # no answers yet, and none where no token is left to choose


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """One answer.

    Attributes:
        tokens: What was written, without the end.
        score: What it was ranked by: the average of log-probabilities; for a beam, their sum over
            its penalty.
        log_probability: The model's own, of all tokens and the end if there is one.
        token_scores: The model's log-probability of each of them.
        alternatives: In the place of each, the likeliest tokens and their log-probabilities.
        reason: Whether it ended by itself, by its length, or at a text to stop at.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_scores: tuple[float, ...]
    alternatives: tuple[tuple[tuple[int, float], ...], ...]
    reason: Reason


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Paths:
    """Branches of all rows, with room for as many tokens as they may become.

    Attributes:
        tokens, scores: What was written, and the model's log-probability of it.
        others, other_scores: The A likeliest tokens at each step.
        total: What a branch is compared by; minus infinity where there is none.
        lengths, reasons: How many tokens, the end among them, and why no more: see `REASONS`.
    """

    tokens: Int[Tensor, "B W L"]
    scores: Float[Tensor, "B W L"]
    others: Int[Tensor, "B W L A"]
    other_scores: Float[Tensor, "B W L A"]
    total: Float[Tensor, "B W"]
    lengths: Int[Tensor, "B W"]
    reasons: Int[Tensor, "B W"]

    @staticmethod
    def empty(
        rows: int, branches: int, length: int, alternatives: int, device: torch.device
    ) -> "Paths":
        """No path yet: totals of minus infinity."""
        shape = (rows, branches, length)
        return Paths(
            tokens=torch.full(shape, -1, device=device),
            scores=torch.zeros(shape, device=device),
            others=torch.full((*shape, alternatives), -1, device=device),
            other_scores=torch.zeros(*shape, alternatives, device=device),
            total=torch.full(shape[:2], -torch.inf, device=device),
            lengths=torch.zeros(shape[:2], dtype=torch.long, device=device),
            reasons=torch.zeros(shape[:2], dtype=torch.long, device=device),
        )

    def picked(self, branches: Int[Tensor, "B n"]) -> "Paths":
        """These branches of each row."""
        row = torch.arange(len(branches), device=branches.device)[:, None]
        return _made(x[row, branches] for x in self)

    def kept(self, rows: Int[Tensor, " kept"]) -> "Paths":
        """These rows alone."""
        return _made(x[rows] for x in self)

    def beside(self, other: "Paths") -> "Paths":
        """The branches of both."""
        return _made(torch.cat([mine, theirs], 1) for mine, theirs in zip(self, other, strict=True))

    def best(self, count: int) -> "Paths":
        """The best branches of each row, from the best down."""
        return self.picked(self.total.topk(count).indices)

    def write(
        self,
        step: int,
        tokens: Int[Tensor, "B n"],
        own: Float[Tensor, "B W V"],
        parents: Int[Tensor, "#B n"],
    ) -> None:
        """Write a token along every branch, in place, with what the model said of it.

        Args:
            own: The model's log-probabilities.
            parents: Which of its branches each path comes from.
        """
        row = torch.arange(len(tokens), device=tokens.device)[:, None]
        self.tokens[:, :, step] = tokens
        self.scores[:, :, step] = own[row, parents, tokens.clamp(min=0)]
        if self.others.shape[-1]:
            scores, others = top(own, self.others.shape[-1])
            self.others[:, :, step, : others.shape[-1]] = others[row, parents]
            self.other_scores[:, :, step, : others.shape[-1]] = scores[row, parents]

    def answers(self) -> list[list[Hypothesis]]:
        """The answers of each row, in order; branches with no total are none."""
        lists = (x.tolist() for x in self)
        return [
            [_hypothesis(*branch) for branch in zip(*row, strict=True) if branch[4] > -torch.inf]
            for row in zip(*lists, strict=True)
        ]

    def __iter__(self) -> Iterator[Tensor]:
        return (getattr(self, field.name) for field in fields(self))


def _made(tensors: Iterable[Tensor]) -> Paths:
    """Paths of these tensors, in the order of the fields."""
    return Paths(**{field.name: x for field, x in zip(fields(Paths), tensors, strict=True)})


def _hypothesis(
    tokens: list[int],
    scores: list[float],
    others: list[list[int]],
    other_scores: list[list[float]],
    total: float,
    length: int,
    reason: int,
) -> Hypothesis:
    """A path, cut to its length."""
    pairs = (zip(*both, strict=True) for both in zip(others, other_scores, strict=True))
    return Hypothesis(
        tokens=tuple(tokens[: length - (REASONS[reason] == "end")]),
        score=total,
        log_probability=sum(scores[:length]),
        token_scores=tuple(scores[:length]),
        alternatives=tuple(
            tuple((token, score) for token, score in pair if token >= 0)
            for pair in islice(pairs, length)
        ),
        reason=REASONS[reason],
    )
