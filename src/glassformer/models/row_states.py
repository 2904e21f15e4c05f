"""Stepping by rows: for decoders that keep a state instead of keys (linear attention, GRU).

Every branch is a row of its own. A state is small, so going on from another branch selects it; the
memory is laid out once a branch and then stays, since branches never leave their row.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.caches import Cache, Memory
from glassformer.core.kernels.forms import padded
from glassformer.core.kinds.linear import LinearState
from glassformer.core.layout import Layout
from glassformer.models.baselines.bahdanau import BahdanauDecoder, RecurrentCache
from glassformer.models.stacks import Decoder


@dataclass(frozen=True, eq=False, slots=True)
class Prompt:
    """What is read before the first step, in padded rows."""

    tokens: Int[Tensor, "B P"]
    layout: Layout

    @staticmethod
    def of(prompts: Sequence[Sequence[int]], device: torch.device) -> "Prompt | None":
        """These prompts; None where all are empty."""
        lengths = [len(prompt) for prompt in prompts]
        longest = max(lengths)
        if not longest:
            return None
        lines = [[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts]
        even = min(lengths) == longest
        return Prompt(
            torch.tensor(lines, device=device),
            Layout.full(len(lines), longest, device)
            if even
            else Layout.padded(lengths, device=device),
        )


class RowScorer:
    """Steps of a decoder with a state.

    Args:
        score: The model: (tokens, layout, memory, caches) -> scores.
        first: The token each row goes on from.
        memory: What the decoder looks at; None for a language model.
        prompt: What is read before the first step.
    """

    longest: int | None = None
    compact_below = 1.0  # a state is small: nothing speaks against leaving at once

    def __init__(
        self,
        score: Callable[..., Any],
        decoder: Decoder | BahdanauDecoder,
        first: Int[Tensor, " B"],
        *,
        memory: Sequence[Memory] | None = None,
        prompt: Prompt | None = None,
    ) -> None:
        self.score, self.decoder, self.first = score, decoder, first
        self.memory, self.prompt = memory, prompt

    def begin(self, branches: int, length: int) -> "RowState":
        """The state after the prompt, for every branch."""
        caches, device = self.decoder.new_caches(), self.first.device
        lengths, reach = torch.zeros_like(self.first), 0
        if self.prompt is not None:
            self.score(self.prompt.tokens, self.prompt.layout, None, caches)
            lengths, reach = self.prompt.layout.lengths, self.prompt.layout.longest
        rows = torch.arange(len(self.first), device=device).repeat_interleave(branches)
        return RowState(caches, self.memory, lengths, reach, branches).chosen(rows)

    def step(
        self, tokens: Int[Tensor, "B W"], state: "RowState"
    ) -> tuple[Float[Tensor, "B W V"], "RowState"]:
        """Scores of the next token of every branch."""
        layout = Layout.full(tokens.numel(), 1, tokens.device)
        scores = self.score(tokens.reshape(-1, 1), layout, state.memory, state.caches)
        after = replace(state, lengths=state.lengths + 1, reach=state.reach + 1)
        return scores.view(*tokens.shape, -1), after


@dataclass(frozen=True, eq=False, slots=True)
class RowState:
    """The states of all branches, a row each: branch w of row b is row b W + w.

    Attributes:
        lengths: How many tokens each has read.
        reach: No token stands here or beyond.
    """

    caches: Sequence[Cache]
    memory: Sequence[Memory] | None
    lengths: Int[Tensor, " rows"]
    reach: int
    branches: int

    def branched(self, parents: Int[Tensor, "B W"]) -> "RowState":
        first = torch.arange(len(parents), device=parents.device)[:, None] * self.branches
        return replace(self.chosen((first + parents).flatten()), memory=self.memory)

    def kept(self, rows: Int[Tensor, " kept"]) -> "RowState":
        each = torch.arange(self.branches, device=rows.device)
        return self.chosen((rows[:, None] * self.branches + each).flatten())

    def chosen(self, rows: Int[Tensor, " chosen"]) -> "RowState":
        """These rows, in this order."""
        lengths, memory = self.lengths[rows], self.memory
        if memory is not None:
            memory = [chosen_rows(kept, rows) for kept in memory]
        last = Layout.padded(torch.ones_like(lengths), longest=1).shifted(lengths - 1, self.reach)
        caches = [chosen_cache(cache, rows, last) for cache in self.caches]
        return replace(self, caches=caches, memory=memory, lengths=lengths)


def chosen_cache(cache: Cache, rows: Int[Tensor, " chosen"], last: Layout) -> Cache:
    """The state of these rows, given where the last token of each stands."""
    match cache:
        case LinearState(sums=Tensor() as sums):
            linear = LinearState()
            linear.update(sums[rows], last)
            return linear
        case RecurrentCache(state=Tensor() as state):
            recurrent = RecurrentCache()
            recurrent.hold(state[:, rows], last)
            return recurrent
    return cache  # nothing was read yet


def chosen_rows(memory: Memory, rows: Int[Tensor, " chosen"]) -> Memory:
    """The memory of these rows, in this order."""
    layout = memory.layout
    lengths = None if layout.is_full else layout.lengths[rows]
    layout = replace(layout, rows=len(rows), tokens=None, row_lengths=lengths)
    return Memory(memory.k[rows], memory.v[rows], layout)


def in_rows(memory: Memory) -> Memory:
    """The same memory in padded rows."""
    layout = memory.layout
    return Memory(padded(memory.k, layout), padded(memory.v, layout), layout.as_padded())
