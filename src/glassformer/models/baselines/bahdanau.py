"""The decoder attention was invented for: a GRU that attends to the source before each token.

    s₀ = tanh(W mean(memory) + b)
    cₜ = Σ α memory        α = softmax(wᵀ tanh(W_q sₜ₋₁ + W_k memory))
    sₜ = GRU([xₜ; cₜ], sₜ₋₁)
    yₜ = W_out [sₜ; cₜ] + b

Bahdanau et al., 2014. With several layers, the query is the top one's state. An LSTM can take the
GRU's place: its state is the hidden states of the layers followed by their cells, which start at
zero. Unlike a Transformer it cannot compute all steps at once: step t needs the state before it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config import StackConfig, choose
from glassformer.core.caches import Memory, StateCache
from glassformer.core.classic import AdditiveAttention, masked_softmax
from glassformer.core.dropout import Dropout
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, causal
from glassformer.core.shapes import MemoryVectors, Vectors
from glassformer.errors import GlassformerError
from glassformer.models.baselines.recurrent import CELLS
from glassformer.models.baselines.rows import in_rows, in_the_form_of, refuse_other_mask, run_layers

State = Float[Tensor, "layers B D"]  # for an LSTM, hidden states and then cells


class RecurrentCache(StateCache):
    """The state of a recurrent network."""

    row_axis = 1


class BahdanauDecoder(nn.Module):
    """Reads or continues a sequence from left to right, one step at a time.

    Dropout applies to the input and between layers.

    Args:
        memory_dim: Width of the memory to attend to.
    """

    def __init__(self, config: StackConfig, *, memory_dim: int | None = None) -> None:
        super().__init__()
        choose("kind of recurrent decoder", config.kind, tuple(CELLS))
        self.name = f"a decoder of kind {config.kind}"
        if memory_dim is None:
            raise GlassformerError(
                f"{self.name} attends to a memory, and this model has none; "
                f'add an encoder, or use decoder kind = "attention"'
            )
        dim, self.depth = config.dim, config.depth
        self.dim, self.dropout = dim, Dropout(config.dropout)
        self.attention = AdditiveAttention(dim, memory_dim, dim)
        self.to_start = nn.Linear(memory_dim, config.depth * dim)
        self.layers = CELLS[config.kind](
            dim + memory_dim,
            dim,
            config.depth,
            batch_first=True,
            dropout=config.dropout if config.depth > 1 else 0.0,  # avoids PyTorch's warning
        )
        self.to_out = nn.Linear(dim + memory_dim, dim)

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        memory: Sequence[Memory] | None = None,
        mask: Mask = causal,
        caches: Sequence[RecurrentCache] | None = None,
    ) -> Vectors:
        """A vector for each token of `x`; called like `Decoder`."""
        refuse_other_mask(self.name, mask, causal)
        kept = self._checked(memory, layout)
        placed = layout if caches is None else caches[0].place(layout)
        state = None if caches is None else caches[0].state
        answers, state = self._read(
            self.dropout(in_rows(x, layout)), layout, kept, self._start(kept, state)
        )
        if caches is not None:
            caches[0].hold(state, placed)
        return in_the_form_of(layout, answers)

    def keep(self, memory: MemoryVectors, layout: Layout) -> list[Memory]:
        """The memory and its keys, computed once, as a single head."""
        values = in_rows(memory, layout)  # (B, S, E)
        keys = self.attention.to_k(values)  # (B, S, D)
        return [Memory(keys[:, None], values[:, None], layout.as_padded())]

    def new_caches(self) -> list[RecurrentCache]:
        """One empty cache for the states of all layers."""
        return [RecurrentCache()]

    def _checked(self, memory: Sequence[Memory] | None, layout: Layout) -> Memory:
        """The memory, refused if it is missing or does not fit."""
        if memory is None:
            raise ValueError(f"{self.name} attends to a memory; pass what `keep` returns")
        if memory[0].layout.rows != layout.rows:
            raise ValueError(
                f"the batch has {layout.rows} rows, but its memory {memory[0].layout.rows}; "
                f"give every row one row of memory"
            )
        return memory[0]

    def _start(self, memory: Memory, state: State | None) -> State:
        """The state to continue from; at the start, a projection of the memory's average."""
        if state is not None:
            return state
        average = memory.v[:, 0].sum(1) / memory.layout.lengths.clamp(min=1)[:, None]  # (B, E)
        layers = self.to_start(average).tanh().unflatten(-1, (self.depth, self.dim))
        state = layers.transpose(0, 1).to(self.to_start.weight.dtype)  # (layers, B, D)
        if isinstance(self.layers, nn.LSTM):
            return torch.cat([state, torch.zeros_like(state)])
        return state.contiguous()

    def _read(
        self, x: Float[Tensor, "B T D"], layout: Layout, memory: Memory, state: State
    ) -> tuple[Float[Tensor, "B T D"], State]:
        """Outputs for all tokens, and the state after each row's last."""
        answers = []
        for step in range(layout.longest):
            context = self._attend(self._top(state), memory)  # (B, E)
            new = torch.cat([x[:, step], context], -1)[:, None]  # (B, 1, D + E)
            after = self._advance(new, state)
            answers.append(torch.cat([self._top(after), context], -1))  # (B, D + E)
            if layout.is_full:
                state = after
            else:  # a finished row keeps its state
                state = torch.where((step < layout.lengths)[:, None], after, state)
        return self.to_out(torch.stack(answers, 1)) if answers else x, state

    def _advance(self, new: Float[Tensor, "B 1 width"], state: State) -> State:
        """The state after one more vector."""
        if isinstance(self.layers, nn.LSTM):
            hidden, cells = state.chunk(2)
            return torch.cat(run_layers(self.layers, new, (hidden, cells))[1])
        return run_layers(self.layers, new, state)[1]

    def _top(self, state: State) -> Float[Tensor, "B D"]:
        """The hidden state of the top layer."""
        return state[self.depth - 1]

    def _attend(self, query: Float[Tensor, "B D"], memory: Memory) -> Float[Tensor, "B E"]:
        """The average of the memory's vectors by these weights."""
        return (self.weigh(query, memory) @ memory.v[:, 0])[:, 0]

    def weigh(self, query: Float[Tensor, "B D"], memory: Memory) -> Float[Tensor, "B 1 S"]:
        """The weights of AdditiveAttention, with keys computed beforehand."""
        pairs = self.attention.to_q(query)[:, None] + memory.k[:, 0]  # (B, S, D)
        scores = self.attention.to_score(pairs.tanh()).mT  # (B, 1, S)
        lengths = None if memory.layout.is_full else memory.layout.lengths
        return masked_softmax(scores, lengths)
