"""Paths: the tokens written along every branch, and the answers they become."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.decode.topk import topk

Reason = Literal["end", "length", "stop"]
REASONS: tuple[Reason, ...] = ("end", "length", "stop")
END, LENGTH, STOP = range(len(REASONS))
UNFINISHED, STUCK = -1, -2  # not an answer yet; never one, as no token was left to choose


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """One answer.

    Attributes:
        tokens: The output, without the end.
        score: What it is ranked by: the mean log-probability; for beam search, the sum of
            log-probabilities over the length penalty.
        log_probability: The model's, of all tokens, the end included if there is one.
        token_scores: The model's log-probability of each of them.
        alternatives: The likeliest tokens at each position, with their log-probabilities.
        reason: Why it ended: the end token, the length limit, or a stop text.
    """

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    token_scores: tuple[float, ...]
    alternatives: tuple[tuple[tuple[int, float], ...], ...]
    reason: Reason


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Paths:
    """Branches of all rows, with room for the maximum number of tokens.

    Attributes:
        tokens, scores: The tokens written, and the model's log-probability of each.
        alternatives, alternative_scores: The A likeliest tokens at each step.
        total: The score of a branch; minus infinity for no branch.
        lengths, reasons: The number of tokens, the end included, and why it ended: see `REASONS`.
    """

    tokens: Int[Tensor, "B W L"]
    scores: Float[Tensor, "B W L"]
    alternatives: Int[Tensor, "B W L A"]
    alternative_scores: Float[Tensor, "B W L A"]
    total: Float[Tensor, "B W"]
    lengths: Int[Tensor, "B W"]
    reasons: Int[Tensor, "B W"]

    @staticmethod
    def empty(
        rows: int, branches: int, length: int, alternatives: int, device: torch.device
    ) -> "Paths":
        """No branches yet: totals of minus infinity."""
        shape = (rows, branches, length)
        return Paths(
            tokens=torch.full(shape, -1, device=device),
            scores=torch.zeros(shape, device=device),
            alternatives=torch.full((*shape, alternatives), -1, device=device),
            alternative_scores=torch.zeros(*shape, alternatives, device=device),
            total=torch.full(shape[:2], -torch.inf, device=device),
            lengths=torch.zeros(shape[:2], dtype=torch.long, device=device),
            reasons=torch.zeros(shape[:2], dtype=torch.long, device=device),
        )

    def select(self, branches: Int[Tensor, "B n"]) -> "Paths":
        """These branches of each row."""
        row = torch.arange(len(branches), device=branches.device)[:, None]
        return _from_tensors(x[row, branches] for x in self)

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "Paths":
        """These rows only."""
        return _from_tensors(x[rows] for x in self)

    def concat(self, other: "Paths") -> "Paths":
        """The branches of both."""
        return _from_tensors(
            torch.cat([mine, theirs], 1) for mine, theirs in zip(self, other, strict=True)
        )

    def best(self, count: int) -> "Paths":
        """The best branches of each row, best first."""
        return self.select(self.total.topk(count).indices)

    def write(
        self,
        step: int | Int[Tensor, "1"],
        tokens: Int[Tensor, "B n"],
        log_probs: Float[Tensor, "B W V"],
        parents: Int[Tensor, "#B n"],
    ) -> None:
        """Write a token to every branch, in place.

        Args:
            step: A number, or a tensor that counts steps on the device.
            log_probs: The model's log-probabilities of this step.
            parents: The branch of this step that each path continues.
        """
        row = torch.arange(len(tokens), device=tokens.device)[:, None]
        _put(self.tokens, step, tokens)
        _put(self.scores, step, log_probs[row, parents, tokens.clamp(min=0)])
        if self.alternatives.shape[-1]:
            scores, alternatives = topk(log_probs, self.alternatives.shape[-1])
            count = alternatives.shape[-1]
            _put(self.alternatives[..., :count], step, alternatives[row, parents])
            _put(self.alternative_scores[..., :count], step, scores[row, parents])

    def answers(self) -> list[list[Hypothesis]]:
        """The answers of each row, in order."""
        lists = (x.tolist() for x in self)
        return [
            [_hypothesis(*branch) for branch in zip(*row, strict=True) if branch[4] > -torch.inf]
            for row in zip(*lists, strict=True)
        ]

    def __iter__(self) -> Iterator[Tensor]:
        return (getattr(self, field.name) for field in fields(self))


def _put(x: Tensor, step: int | Tensor, values: Tensor) -> None:
    """Set what stands at a step of every branch; by a tensor, without waiting for the device."""
    if isinstance(step, int):
        x[:, :, step] = values
    else:
        x.index_copy_(2, step, values.unsqueeze(2))


def _from_tensors(tensors: Iterable[Tensor]) -> Paths:
    """Paths of tensors in the order of the fields."""
    return Paths(**{field.name: x for field, x in zip(fields(Paths), tensors, strict=True)})


def _hypothesis(
    tokens: list[int],
    scores: list[float],
    alternatives: list[list[int]],
    alternative_scores: list[list[float]],
    total: float,
    length: int,
    reason: int,
) -> Hypothesis:
    """A path, cut off at its end."""
    pairs = (zip(*both, strict=True) for both in zip(alternatives, alternative_scores, strict=True))
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
