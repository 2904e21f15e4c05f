"""Models as scorers: how decoding asks a model for the next token.

    translating   an encoder-decoder: the source is encoded once, whatever it is
    continuing    a language model: prompts of different lengths are read once

A decoder of softmax attention goes step by step through a `BranchingCache`: the W branches of a row
travel as W tokens that stand at one position. They look at one copy of their source and prompt, and
going on from another branch copies no key. Decoders that keep a state instead of keys (linear
attention, GRU) select their states, row by row. On CUDA the step of either is captured as a graph.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import Ancestry, BranchingCache, Cache, Memory
from glassformer.core.kernels.fused import widened
from glassformer.core.layout import Layout, pack
from glassformer.core.positions import Position
from glassformer.core.shapes import Vectors, merge_heads
from glassformer.decode import Scorer
from glassformer.errors import GlassformerError
from glassformer.models.blocks.transformer import TransformerBlock
from glassformer.models.capturing import graph_on
from glassformer.models.frontends import Tokens
from glassformer.models.row_states import Prompt, RowScorer, chosen_rows, in_rows, room_after
from glassformer.models.stacks import Decoder
from glassformer.models.transformer import LanguageModel, Transformer, scored

COMPACT_BELOW = {"cpu": 0.9, "cuda": 0.5}  # on CUDA, fewer rows mean another capture
MUCH_PADDING = 0.15  # on a CPU, reading packed rows is faster from this share of padding on


@torch.no_grad()
def translating(model: Transformer, samples: Tensor, layout: Layout, *, first: int) -> Scorer:
    """A scorer of what `model` writes for these samples, beginning after the token `first`."""
    if isinstance(model.frontend, Tokens):
        samples, layout = without_padding(samples, layout)
    memory = [in_rows(kept) for kept in model.encode(samples, layout)]
    start = torch.full((layout.rows,), first, device=layout.device)
    decoder = model.decoder
    if isinstance(decoder, Decoder) and keeps_keys(decoder):
        return BranchingScorer(decoder, model.target, model.unembed, start, memory=memory)
    return RowScorer(model.decode, decoder, start, memory=memory)


def without_padding(tokens: Tensor, layout: Layout) -> tuple[Tensor, Layout]:
    """Packed where that is faster to read; on CUDA, stacks pack by themselves."""
    if layout.is_packed or layout.tokens is None or layout.device.type != "cpu":
        return tokens, layout
    if layout.tokens > (1 - MUCH_PADDING) * layout.rows * layout.longest:
        return tokens, layout
    layout = layout.as_packed()
    return pack(tokens, layout), layout


@torch.no_grad()
def continuing(model: LanguageModel, prompts: Sequence[Sequence[int]]) -> Scorer:
    """A scorer of how `model` continues these prompts, of one token each at least."""
    for number, prompt in enumerate(prompts, 1):
        if not prompt:
            raise GlassformerError(
                f"prompt {number} is empty; give at least one token to go on from"
            )
    device = model.tokens.table.weight.device
    first = torch.tensor([prompt[-1] for prompt in prompts], device=device)
    read = Prompt.of([prompt[:-1] for prompt in prompts], device)
    if keeps_keys(model.decoder):
        return BranchingScorer(model.decoder, model.tokens, model.unembed, first, prompt=read)

    def score(tokens: Tensor, layout: Layout, memory: None, caches: Sequence[Cache]) -> Tensor:
        return model(tokens, layout=layout, caches=caches)

    return RowScorer(score, model.decoder, first, prompt=read)


class BranchingScorer:
    """Steps of a decoder whose branches share all that they have in common.

    Args:
        tokens, unembed: How tokens become vectors, and vectors scores.
        first: The token each row goes on from.
        memory: What each block looks across at; None for a language model.
        prompt: What is read before the first step.
        capture: Whether steps become a graph; by default on CUDA.
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
        self.longest = room_after(prompt, decoder)

    def begin(self, branches: int, length: int) -> "BranchingState":
        """Room for all branches, and the prompts read."""
        ancestry = Ancestry(
            len(self.first),
            branches,
            length,
            prompt=None if self.prompt is None else self.prompt.layout,
            fixed=self.capture,
            device=self.first.device,
        )
        caches = [BranchingCache(ancestry.slots, fixed=self.capture) for _ in self.decoder.blocks]
        if self.prompt is not None:
            x, layout = self.tokens(self.prompt.tokens, self.prompt.layout)
            self.decoder(x, layout=layout, caches=caches)
        return BranchingState(ancestry, caches, self.memory)

    def step(
        self, tokens: Int[Tensor, "B W"], state: "BranchingState"
    ) -> tuple[Float[Tensor, "B W V"], "BranchingState"]:
        """Scores of the next token of every branch."""
        score = partial(self.score, state=state)
        return score(tokens) if state.graph is None else state.graph(score, tokens), state

    def score(self, tokens: Int[Tensor, "B W"], state: "BranchingState") -> Float[Tensor, "B W V"]:
        """A step of the decoder, one token a branch, with keys and values written in place."""
        rows = Layout.full(tokens.shape[0], tokens.shape[1], tokens.device)
        state.ancestry.advance()
        at = state.ancestry.place()
        x, _ = self.tokens(tokens, rows)  # (B, W, D)
        x = self.decoder.position.embed(x, at)
        for number, block in enumerate(self.decoder.blocks):
            memory = None if state.memory is None else state.memory[number]
            look_around = partial(
                look_back,
                cast(MultiHeadAttention, block.attention),
                position=self.decoder.position,
                at=at,
                cache=state.caches[number],
                ancestry=state.ancestry,
            )
            x = through(cast(TransformerBlock, block), x, look_around, rows, memory)
        x = x if self.decoder.norm is None else self.decoder.norm(x, rows)
        return scored(x, self.tokens, self.unembed)


class BranchingState:
    """What a BranchingScorer remembers; it is changed in place."""

    def __init__(
        self,
        ancestry: Ancestry,
        caches: list[BranchingCache],
        memory: Sequence[Memory] | None,
    ) -> None:
        self.ancestry, self.caches, self.memory = ancestry, caches, memory
        self.graph = graph_on(ancestry.seen.device, fixed=ancestry.fixed)

    def branched(self, parents: Int[Tensor, "B W"]) -> "BranchingState":
        self.ancestry.branch(parents)
        return self

    def kept(self, rows: Int[Tensor, " kept"]) -> "BranchingState":
        self.ancestry.keep(rows)
        for cache in self.caches:
            cache.keep(rows, self.ancestry.visible)
        if self.memory is not None:
            self.memory = [chosen_rows(memory, rows) for memory in self.memory]
        self.graph = graph_on(rows.device, fixed=self.ancestry.fixed)
        return self


def through(
    block: TransformerBlock,
    x: Vectors,
    look_around: Callable[[Vectors], Vectors],
    rows: Layout,
    memory: Memory | None,
) -> Vectors:
    """The way of `TransformerBlock.forward`, with another way to look around."""
    x = block.attention_residual(x, look_around, rows)
    if block.cross_attention is not None and block.cross_residual is not None:
        look_across = partial(block.cross_attention, memory=memory, layout=rows)
        x = block.cross_residual(x, look_across, rows)
    return block.feedforward_residual(x, block.feedforward, rows)


def look_back(
    layer: MultiHeadAttention,
    x: Float[Tensor, "B W D"],
    *,
    position: Position,
    at: Layout,
    cache: BranchingCache,
    ancestry: Ancestry,
) -> Float[Tensor, "B W D"]:
    """Self-attention of the newest token of every branch, over its own ancestors alone."""
    q, (k, v) = layer._queries(x), layer._keys_and_values(x)
    q, k = position.turn(q, k, at)
    k, v = cache.write(k, v, ancestry)
    allowed = ancestry.table()
    bias = position.bias(q, at, Layout.full(len(x), ancestry.reach, x.device))
    if bias is not None:
        scores = ancestry.scores(bias).to(q.dtype)
        allowed = scores if allowed is None else torch.where(allowed, scores, -torch.inf)
    width, wide = v.shape[-1], max(q.shape[-1], v.shape[-1])
    answer = F.scaled_dot_product_attention(
        widened(q, wide),
        widened(k, wide),
        widened(v, wide),
        attn_mask=allowed,
        scale=q.shape[-1] ** -0.5,
        enable_gqa=layer.heads != layer.groups,
    )
    answer = merge_heads(answer[..., :width])
    return answer if layer.to_out is None else layer.to_out(answer)


def keeps_keys(decoder: Decoder) -> bool:
    """Whether all its blocks look around by softmax attention, which keeps keys and values."""
    return all(isinstance(block.attention, MultiHeadAttention) for block in decoder.blocks)
