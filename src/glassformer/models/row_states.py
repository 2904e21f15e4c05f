"""Stepping by rows: for decoders that keep a state instead of keys (linear attention, GRU).

Every branch is a row of its own. A state is small, so going on from another branch selects it; the
memory is laid out once a branch and then stays, since branches never leave their row. On CUDA the
step is captured as a graph.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.caches import Memory, StateCache
from glassformer.core.kernels.forms import padded
from glassformer.core.layout import Layout
from glassformer.core.positions.absolute import Learned
from glassformer.models.baselines.bahdanau import BahdanauDecoder
from glassformer.models.capturing import CapturedStep, graph_on
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
        capture: Whether steps become a graph; by default on CUDA.
    """

    def __init__(
        self,
        score: Callable[..., Any],
        decoder: Decoder | BahdanauDecoder,
        first: Int[Tensor, " B"],
        *,
        memory: Sequence[Memory] | None = None,
        prompt: Prompt | None = None,
        capture: bool | None = None,
    ) -> None:
        self.score, self.decoder, self.first = score, decoder, first
        self.memory, self.prompt = memory, prompt
        self.capture = first.is_cuda if capture is None else capture
        self.compact_below = 0.5 if self.capture else 1.0  # fewer rows mean another capture
        self.longest = room_after(prompt, decoder)

    def begin(self, branches: int, length: int) -> "RowState":
        """The state after the prompt, for every branch."""
        caches = cast(list[StateCache], self.decoder.new_caches())
        lengths, read = torch.zeros_like(self.first), 0
        if self.prompt is not None:
            self.score(self.prompt.tokens, self.prompt.layout, None, caches)
            lengths, read = self.prompt.layout.lengths, self.prompt.layout.longest
        for cache in caches:
            cache.fixed = self.capture
        state = RowState(caches, self.memory, lengths, read + length, branches)
        state.choose(torch.arange(len(lengths), device=lengths.device).repeat_interleave(branches))
        return state

    def step(
        self, tokens: Int[Tensor, "B W"], state: "RowState"
    ) -> tuple[Float[Tensor, "B W V"], "RowState"]:
        """Scores of the next token of every branch."""
        score = partial(self._score, state=state)
        return score(tokens) if state.graph is None else state.graph(score, tokens), state

    def _score(self, tokens: Int[Tensor, "B W"], state: "RowState") -> Float[Tensor, "B W V"]:
        scores = self.score(tokens.reshape(-1, 1), state.place(), state.memory, state.caches)
        state.lengths += 1
        return scores.view(*tokens.shape, -1)


class RowState:
    """The states of all branches, a row each: branch w of row b is row b W + w.

    Args:
        lengths: How many tokens each has read.
        reach: No token will stand here or beyond.
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
        """Where the next token of every branch stands."""
        newest = Layout.full(len(self.lengths), 1, self.lengths.device)
        return newest.shifted(self.lengths, self.reach)

    def branched(self, parents: Int[Tensor, "B W"]) -> "RowState":
        first = torch.arange(len(parents), device=parents.device)[:, None] * self.branches
        for cache in self.caches:
            cache.choose((first + parents).flatten())
        return self

    def kept(self, rows: Int[Tensor, " kept"]) -> "RowState":
        each = torch.arange(self.branches, device=rows.device)
        self.choose((rows[:, None] * self.branches + each).flatten())
        return self

    def choose(self, rows: Int[Tensor, " chosen"]) -> None:
        """Go on with these of the states, in this order."""
        self.lengths = self.lengths[rows]
        if self.memory is not None:
            self.memory = [chosen_rows(memory, rows) for memory in self.memory]
        for cache in self.caches:
            cache.choose(rows)
        self.graph = graph_on(rows.device, fixed=all(cache.fixed for cache in self.caches))


def room_after(prompt: Prompt | None, decoder: nn.Module) -> int | None:
    """How many tokens a decoder can write after a prompt; None for any number."""
    position = getattr(decoder, "position", None)
    if not isinstance(position, Learned):
        return None
    return position.max_length - (0 if prompt is None else prompt.layout.longest)


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
