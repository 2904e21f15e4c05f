"""What decoding needs from a model: scores of the next token, and a state.

Decoding handles several sequences at once (rows, B) and follows several branches in each (W). This
is all it knows about a model:

    state = scorer.begin(branches, length)         room for `length` tokens in every branch
    scores, state = scorer.step(tokens, state)     tokens (B, W) -> scores (B, W, V)
    state = state.reorder(parents)                 branch w of a row continues branch parents[w]
    state = state.select_rows(rows)                only these rows continue

A branch never leaves its row, so what belongs to a row (its source, its prompt) is stored once for
all of its branches. A state that was passed to `step`, `reorder` or `select_rows` must not be used
again.
"""

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor


@runtime_checkable
class ScorerState(Protocol):
    """What a scorer remembers of every branch of every row."""

    def reorder(self, parents: Int[Tensor, "B W"]) -> Any:
        """The state in which each branch continues branch `parents` of its row."""
        ...

    def select_rows(self, rows: Int[Tensor, " selected"]) -> Any:
        """The state of these rows only, in this order."""
        ...


@runtime_checkable
class Scorer(Protocol):
    """Scores the next token of every branch.

    Attributes:
        first: (B,) the token that each row continues from; it is not repeated.
        room: The maximum number of tokens of each row; None for no limit.
        compact_below: Finished rows leave the batch once fewer than this share is unfinished.
    """

    first: Int[Tensor, " B"]
    room: Sequence[int] | None
    compact_below: float

    def begin(self, branches: int, length: int) -> Any:
        """The state before the first token, the same in every branch."""
        ...

    def step(self, tokens: Int[Tensor, "B W"], state: Any) -> tuple[Float[Tensor, "B W V"], Any]:
        """Scores after these tokens, not necessarily normalised, and the next state."""
        ...


def log_probabilities(scores: Float[Tensor, "B W V"]) -> Float[Tensor, "B W V"]:
    """Scores as log-probabilities, in fp32."""
    return scores.to(torch.float32).log_softmax(-1)
