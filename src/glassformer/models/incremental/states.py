"""States: for decoders with a state of fixed size instead of keys (linear attention, GRU, TCN).

Every branch is a row of its own. A state is small, so continuing from another branch copies it; the
memory is repeated once per branch and then stays, since branches never leave their row.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.caches import Memory, StateCache
from glassformer.core.cuda_graphs import CapturedStep, graph_on, stepped
from glassformer.core.layout import Layout
from glassformer.models.baselines import BaselineDecoder
from glassformer.models.incremental.prompt import Prompt, chosen_rows, reach_after, room_after
from glassformer.models.stacks import Decoder

COMPACT_BELOW = {"cuda": 0.5}  # fewer rows mean another capture; elsewhere rows are removed at once


class StateScorer:
    """Steps of a decoder with a state.

    Args:
        score: The model: (tokens, layout, memory, caches) -> scores.
        first: The token each row continues from.
        memory: What the decoder attends to; None for a language model.
        prompt: What is read before the first step.
        capture: Whether steps are captured as a CUDA graph; by default on CUDA.
    """

    def __init__(
        self,
        score: Callable[..., Any],
        decoder: Decoder | BaselineDecoder,
        first: Int[Tensor, " B"],
        *,
        memory: Sequence[Memory] | None = None,
        prompt: Prompt | None = None,
        capture: bool | None = None,
    ) -> None:
        self.score, self.decoder, self.first = score, decoder, first
        self.memory, self.prompt = memory, prompt
        self.capture = first.is_cuda if capture is None else capture
        self.compact_below = COMPACT_BELOW.get(first.device.type, 1.0)
        self.room = room_after(prompt, decoder, len(first))

    def begin(self, branches: int, length: int) -> "States":
        """The state after the prompt, for every branch."""
        caches = cast(list[StateCache], self.decoder.new_caches())
        lengths = torch.zeros_like(self.first)
        if self.prompt is not None:
            self.score(self.prompt.tokens, self.prompt.layout, None, caches)
            lengths = self.prompt.layout.lengths
        for cache in caches:
            cache.fixed = self.capture
        reach = reach_after(self.prompt, self.decoder, length)
        state = States(caches, self.memory, lengths, reach, branches)
        state.choose(torch.arange(len(lengths), device=lengths.device).repeat_interleave(branches))
        return state

    def step(
        self, tokens: Int[Tensor, "B W"], state: "States"
    ) -> tuple[Float[Tensor, "B W V"], "States"]:
        """Scores of the next token of every branch."""
        return stepped(partial(self._score, state=state), tokens, state.graph), state

    def _score(self, tokens: Int[Tensor, "B W"], state: "States") -> Float[Tensor, "B W V"]:
        scores = self.score(tokens.reshape(-1, 1), state.place(), state.memory, state.caches)
        state.lengths += 1
        return scores.view(*tokens.shape, -1)


class States:
    """The states of all branches, one row each: branch w of row b is row b W + w.

    Args:
        lengths: How many tokens each has read.
        reach: No token will have this position or a later one.
    """

    def __init__(
        self,
        caches: Sequence[StateCache],
        memory: Sequence[Memory] | None,
        lengths: Int[Tensor, " rows"],
        reach: int,
        branches: int,
    ) -> None:
        self.caches, self.memory = caches, memory
        self.lengths, self.reach, self.branches = lengths, reach, branches
        self.graph: CapturedStep | None = None

    def place(self) -> Layout:
        """The layout of the next token of every branch; a finished row may stay where it is."""
        newest = Layout.full(len(self.lengths), 1, self.lengths.device)
        return newest.shifted(self.lengths.clamp(max=self.reach - 1), self.reach)

    def reorder(self, parents: Int[Tensor, "B W"]) -> "States":
        first = torch.arange(len(parents), device=parents.device)[:, None] * self.branches
        for cache in self.caches:
            cache.choose((first + parents).flatten())
        return self

    def select_rows(self, rows: Int[Tensor, " kept"]) -> "States":
        each = torch.arange(self.branches, device=rows.device)
        self.choose((rows[:, None] * self.branches + each).flatten())
        return self

    def choose(self, rows: Int[Tensor, " chosen"]) -> None:
        """Continue with these states, in this order."""
        self.lengths = self.lengths[rows]
        if self.memory is not None:
            self.memory = [chosen_rows(memory, rows) for memory in self.memory]
        for cache in self.caches:
            cache.choose(rows)
        self.graph = graph_on(rows.device, fixed=all(cache.fixed for cache in self.caches))
