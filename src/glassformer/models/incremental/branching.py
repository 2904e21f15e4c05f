"""Branching: for decoders with softmax attention, whose branches share their common past.

The W branches of a row are W tokens at one position, with a `BranchingCache`. They attend to one
copy of their source and prompt, and continuing from another branch copies no keys.
"""

from collections.abc import Sequence
from functools import partial
from typing import TypeGuard

from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.attention import MultiHeadAttention, describe
from glassformer.core.caches import Ancestry, BranchingCache, Memory
from glassformer.core.cuda_graphs import CapturedStep, graph_on, stepped
from glassformer.core.layout import Layout
from glassformer.core.masks import causal
from glassformer.core.positions import Position
from glassformer.models.blocks.transformer import TransformerBlock
from glassformer.models.frontends import Tokens
from glassformer.models.incremental.even import EvenSteps
from glassformer.models.incremental.prompt import Prompt, chosen_rows, reach_after, room_after
from glassformer.models.stacks import Decoder
from glassformer.models.transformer import scored

COMPACT_BELOW = {"cpu": 0.9, "cuda": 0.5}  # on CUDA, fewer rows mean another capture


class BranchingScorer:
    """Steps of a decoder whose branches share their common past.

    Args:
        tokens, unembed: How tokens become vectors, and vectors scores.
        first: The token each row continues from.
        memory: What each block attends to; None for a language model.
        prompt: What is read before the first step.
        capture: Whether steps are captured as a CUDA graph; by default on CUDA.
    """

    def __init__(
        self,
        decoder: Decoder,
        tokens: Tokens,
        unembed: nn.Linear | None,
        first: Int[Tensor, " B"],
        *,
        memory: Sequence[Memory] | None = None,
        prompt: Prompt | None = None,
        capture: bool | None = None,
    ) -> None:
        self.decoder, self.tokens, self.unembed = decoder, tokens, unembed
        self.first, self.memory, self.prompt = first, memory, prompt
        self.capture = first.is_cuda if capture is None else capture
        self.compact_below = COMPACT_BELOW.get(first.device.type, 1.0)
        self.room = room_after(prompt, decoder, len(first))

    def begin(self, branches: int, length: int) -> "BranchingState":
        """The state of all branches, after reading the prompts."""
        ancestry = Ancestry(
            len(self.first),
            branches,
            length,
            prompt=None if self.prompt is None else self.prompt.layout,
            reach=reach_after(self.prompt, self.decoder, length),
            fixed=self.capture,
            device=self.first.device,
        )
        caches = [BranchingCache(ancestry.slots, fixed=self.capture) for _ in self.decoder.blocks]
        if self.prompt is not None:
            x, layout = self.tokens(self.prompt.tokens, self.prompt.layout)
            self.decoder(x, layout=layout, caches=caches)
        graph = graph_on(ancestry.seen.device, fixed=self.capture)
        return BranchingState(ancestry, caches, self.memory, graph=graph)

    def step(
        self, tokens: Int[Tensor, "B W"], state: "BranchingState"
    ) -> tuple[Float[Tensor, "B W V"], "BranchingState"]:
        """Scores of the next token of every branch."""
        return stepped(partial(self.score, state=state), tokens, state.graph), state

    def score(self, tokens: Int[Tensor, "B W"], state: "BranchingState") -> Float[Tensor, "B W V"]:
        """A step of the decoder, one token per branch, with keys and values written in place."""
        rows = Layout.full(tokens.shape[0], tokens.shape[1], tokens.device)
        state.ancestry.advance()
        at = state.ancestry.place()
        x, _ = self.tokens(tokens, rows)  # (B, W, D)

        def attend(
            number: int, layer: MultiHeadAttention, x: Float[Tensor, "B W D"]
        ) -> Float[Tensor, "B W D"]:
            position, cache = self.decoder.position, state.caches[number]
            return attend_back(
                layer, x, position=position, at=at, cache=cache, ancestry=state.ancestry
            )

        x = self.decoder.step(x, attend, at=at, layout=rows, memory=state.memory)
        return scored(x, self.tokens, self.unembed)


class BranchingState:
    """The state of a BranchingScorer, changed in place.

    Attributes:
        prepared: What fused steps keep for these rows and caches.
    """

    def __init__(
        self,
        ancestry: Ancestry,
        caches: list[BranchingCache],
        memory: Sequence[Memory] | None,
        *,
        graph: CapturedStep | None,
    ) -> None:
        self.ancestry, self.caches, self.memory = ancestry, caches, memory
        self.graph = graph
        self.prepared: EvenSteps | None = None

    def reorder(self, parents: Int[Tensor, "B W"]) -> "BranchingState":
        self.ancestry.branch(parents)
        return self

    def select_rows(self, rows: Int[Tensor, " kept"]) -> "BranchingState":
        self.ancestry.keep(rows)
        for cache in self.caches:
            cache.keep(rows, self.ancestry.visible)
        if self.memory is not None:
            self.memory = [chosen_rows(memory, rows) for memory in self.memory]
        self.graph = graph_on(rows.device, fixed=self.graph is not None)
        self.prepared = None
        return self


def attend_back(
    layer: MultiHeadAttention,
    x: Float[Tensor, "B W D"],
    *,
    position: Position,
    at: Layout,
    cache: BranchingCache,
    ancestry: Ancestry,
) -> Float[Tensor, "B W D"]:
    """Self-attention of the newest token of every branch, to its own ancestors only."""
    q, (k, v) = layer.queries(x), layer.keys_and_values(x)
    q, k = position.turn(q, k, at)
    k, v = cache.write(k, v, ancestry)
    bias = position.bias(q, at, Layout.full(len(x), ancestry.reach, x.device))
    mask = layer.windowed(causal)
    call = describe(
        q, k, mask=mask, bias=bias, scoring=layer.scoring, aligned=False, branches=ancestry
    )
    return layer.project_out(layer.attend(q, k, v, call))


def keeps_keys(decoder: nn.Module) -> TypeGuard[Decoder]:
    """Whether all its blocks use softmax self-attention, which keeps keys and values."""
    return isinstance(decoder, Decoder) and all(
        isinstance(block, TransformerBlock) and isinstance(block.attention, MultiHeadAttention)
        for block in decoder.blocks
    )
