"""Whole: for a model of any kind, of which nothing is known but how it scores whole sequences.

Every step reads all tokens again. That is slow, but asks nothing of a module except `forward`.
"""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.layout import Layout

Score = Callable[[Tensor, Layout, Tensor], Tensor]


class WholeScorer:
    """Steps of a model that has no state.

    Args:
        score: (tokens (M, T), their layout, the row of the batch that each sequence belongs to)
            -> scores of the token that follows each, (M, V).
        prompts: What each row continues, at least one token.
    """

    compact_below = 1.0
    room: Sequence[int] | None = None

    def __init__(
        self, score: Score, prompts: Sequence[Sequence[int]], device: torch.device
    ) -> None:
        self.score, self.prompts, self.device = score, prompts, device
        self.first = torch.tensor([prompt[-1] for prompt in prompts], device=device)

    def begin(self, branches: int, length: int) -> "WholeSequences":
        """Room for so many tokens after the prompt, in every branch."""
        sizes = [len(prompt) - 1 for prompt in self.prompts]
        tokens = torch.zeros(len(sizes), max(sizes) + length, dtype=torch.long)
        for row, prompt in enumerate(self.prompts):
            tokens[row, : sizes[row]] = torch.tensor(prompt[:-1], dtype=torch.long)
        rows = torch.arange(len(sizes), device=self.device).repeat_interleave(branches)
        lengths = torch.tensor(sizes, device=self.device)
        return WholeSequences(tokens.to(self.device)[rows], lengths[rows], rows, branches)

    def step(
        self, tokens: Int[Tensor, "B W"], state: "WholeSequences"
    ) -> tuple[Float[Tensor, "B W V"], "WholeSequences"]:
        """Scores of the next token of every branch."""
        state.append(tokens.flatten())
        layout = Layout.padded(state.lengths.cpu(), device=self.device)
        scores = self.score(state.tokens[:, : layout.longest], layout, state.rows)  # (M, V)
        return scores.unflatten(0, tokens.shape), state


def last_scores(scores: Float[Tensor, "M T V"], layout: Layout) -> Float[Tensor, "M V"]:
    """The scores at the last token of every sequence."""
    return scores[torch.arange(layout.rows, device=scores.device), layout.lengths - 1]


class WholeSequences:
    """The tokens of all branches: branch w of row b is sequence b W + w.

    Args:
        rows: The row of the batch that each sequence belongs to.
    """

    def __init__(
        self,
        tokens: Int[Tensor, "sequences T"],
        lengths: Int[Tensor, " sequences"],
        rows: Int[Tensor, " sequences"],
        branches: int,
    ) -> None:
        self.tokens, self.lengths, self.rows, self.branches = tokens, lengths, rows, branches

    def append(self, tokens: Int[Tensor, " sequences"]) -> None:
        """Add a token to every sequence; one that is full and finished overwrites its last."""
        at = self.lengths.clamp(max=self.tokens.shape[1] - 1)
        self.tokens[torch.arange(len(at), device=at.device), at] = tokens
        self.lengths = at + 1

    def reorder(self, parents: Int[Tensor, "B W"]) -> "WholeSequences":
        first = torch.arange(len(parents), device=parents.device)[:, None] * self.branches
        return self._chosen((first + parents).flatten())

    def select_rows(self, rows: Int[Tensor, " kept"]) -> "WholeSequences":
        each = torch.arange(self.branches, device=rows.device)
        return self._chosen((rows[:, None] * self.branches + each).flatten())

    def _chosen(self, at: Int[Tensor, " chosen"]) -> "WholeSequences":
        return WholeSequences(self.tokens[at], self.lengths[at], self.rows[at], self.branches)
