"""What decoding is given: something that scores the next token, and what it remembers.

Decoding asks for a few sequences at once (rows, B) and follows several ways of going on in each
(branches, W). All it knows of a model is this:

    state = scorer.begin(branches, length)         room for `length` tokens in every branch
    scores, state = scorer.step(tokens, state)     tokens (B, W) -> scores (B, W, V)
    state = state.branched(parents)                branch w of a row goes on from branch parents[w]
    state = state.kept(rows)                       only these rows go on

A branch never leaves its row, so what belongs to a row (its source, its prompt) exists once however
many branches look at it. A state that is passed to `step`, `branched` or `kept` is used up.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class State(Protocol):
    """What is remembered of every branch of every row."""

    def branched(self, parents: Int[Tensor, "B W"]) -> Any:
        """The state in which each branch goes on from another one of its row, or from itself."""
        ...

    def kept(self, rows: Int[Tensor, " kept"]) -> Any:
        """The state of these rows alone, in this order."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Scores the next token of every branch.

    Attributes:
        first: (B,) the token that each row goes on from; it is not written again.
        room: How many tokens can be written in each row at most; None for any number.
        compact_below: Rows that have ended leave the batch once fewer than this share remain.
    """

    first: Int[Tensor, " B"]
    room: Sequence[int] | None
    compact_below: float

    def begin(self, branches: int, length: int) -> Any:
        """The state before the first token, the same in every branch."""
        ...

    def step(self, tokens: Int[Tensor, "B W"], state: Any) -> tuple[Float[Tensor, "B W V"], Any]:
        """Scores (of any size: they are normalised here) after these tokens, and the state."""
        ...


def log_probabilities(scores: Float[Tensor, "B W V"]) -> Float[Tensor, "B W V"]:
    """Scores as log-probabilities, in fp32."""
    return scores.to(torch.float32).log_softmax(-1)
