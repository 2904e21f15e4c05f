"""Fused steps: a language model's step in a few kernels per layer (`core.steps`).

For decoders of the usual kind: norms first, softmax attention without extras, no memory. The
weights are laid out for it once, so the model must never change afterwards (`frozen`). On CUDA, the
caches of a decoding and the graph of its step are kept for the next one of the same shape.
"""

import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils._triton import has_triton

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import Ancestry, BranchingCache
from glassformer.core.caches.branching import is_even
from glassformer.core.cuda_graphs import CapturedStep, graph_on, stepped
from glassformer.core.feedforward import FeedForward, GatedFeedForward
from glassformer.core.int8 import Int8Linear
from glassformer.core.layout import Layout
from glassformer.core.norms import LayerNorm, RMSNorm
from glassformer.core.positions import Position
from glassformer.core.positions.absolute import Learned, Sinusoidal
from glassformer.core.positions.rotary import Rotary
from glassformer.core.scoring import capped
from glassformer.core.steps.attention import Rotation
from glassformer.core.steps.linear import ACTIVATIONS, StepLinear
from glassformer.models.blocks.transformer import TransformerBlock
from glassformer.models.incremental.branching import COMPACT_BELOW, BranchingState
from glassformer.models.incremental.even import EvenSteps
from glassformer.models.incremental.layer import Layer
from glassformer.models.incremental.prompt import Prompt, max_positions, room_after
from glassformer.models.stacks import Decoder, Encoder
from glassformer.models.transformer import LanguageModel

ROUND = 256  # positions come in multiples of this, and slots on CUDA, so that shapes are few
WIDEST = 256  # heads, in one kernel
POSITIONS = (Position, Learned, Sinusoidal, Rotary)

Shape = tuple[int, int, int, bool]  # rows, branches, slots, and whether all slots are seen


@dataclass(frozen=True, eq=False, slots=True)
class Workspace:
    """What the steps of a decoding write to, and their graph."""

    shape: Shape
    ancestry: Ancestry
    caches: list[BranchingCache]
    graph: CapturedStep | None


class FusedModel:
    """A language model laid out for fused steps in one precision."""

    def __init__(self, model: LanguageModel, dtype: torch.dtype) -> None:
        decoder, table = model.decoder, model.tokens.table.weight
        self.dtype, self.softcap = dtype, model.tokens.softcap
        self.position, self.limit = decoder.position, max_positions(decoder)
        self.table = (table.detach() * model.tokens.scale).to(dtype)
        self.layers = [Layer.of(cast(TransformerBlock, block), dtype) for block in decoder.blocks]
        rows = table if model.unembed is None else model.unembed.weight
        self.head = StepLinear.of_weight(
            rows,
            dtype,
            norm=decoder.norm,
            out=torch.float32,
            int8=isinstance(model.unembed, Int8Linear),
        )
        self.rotations: dict[int, Rotation] = {}
        self.idle: list[Workspace] = []  # one at most

    def workspace(self, rows: int, branches: int, length: int, prompt: Prompt | None) -> Workspace:
        """Room for so many tokens in every branch after a prompt; to be put back."""
        layout, device = None if prompt is None else prompt.layout, self.table.device
        read = 0 if layout is None else layout.longest
        slots = read + branches * length
        if device.type == "cuda":
            slots = rounded(slots)
        shape = rows, branches, slots, is_even(branches, layout)
        with suppress(IndexError):
            found = self.idle.pop()
            if found.shape == shape:
                found.ancestry.restart(layout)
                return found
        ancestry = Ancestry(
            rows,
            branches,
            -(-(slots - read) // branches),
            prompt=layout,
            reach=min(rounded(slots), self.limit or rounded(slots)),
            fixed=device.type == "cuda",
            device=device,
        )
        caches = [
            BranchingCache.empty(rows, ancestry.slots, *layer.attention.keys, like=self.table)
            for layer in self.layers
        ]
        return Workspace(shape, ancestry, caches, graph_on(device, fixed=True))

    def put_back(self, workspace: Workspace) -> None:
        """Keep it for the next decoding of the same shape, if no row has left it."""
        if workspace.graph is not None and len(workspace.ancestry.lengths) == workspace.shape[0]:
            self.idle[:] = [workspace]

    def read(self, prompt: Prompt, caches: Sequence[BranchingCache]) -> None:
        """Write the keys and values of a prompt."""
        x = F.embedding(prompt.tokens, self.table)  # (B, P, D)
        rotation, layout = None, prompt.layout
        if isinstance(self.position, Rotary):
            rotation = self._rotation(rounded(layout.longest)).until(layout.longest)
        else:
            x = self.position.embed(x, layout).to(self.dtype)
        x = x.flatten(0, 1)
        for layer, cache in zip(self.layers, caches, strict=True):
            x = layer.read(x, cache, rotation)

    def score(self, tokens: Int[Tensor, "B W"], state: BranchingState) -> Float[Tensor, "B W V"]:
        """A step, one token per branch."""
        ancestry, rows = state.ancestry, len(tokens)
        x = F.embedding(tokens.flatten(), self.table)  # (M, D)
        rotation = None
        if isinstance(self.position, Rotary):
            rotation = self._rotation(rounded(ancestry.slots))
        elif type(self.position) is not Position:
            starts = ancestry.lengths.clamp(max=ancestry.reach - 1)
            at = Layout.full(rows, 1, x.device).shifted(starts, ancestry.reach)
            x = self.position.embed(x.unflatten(0, tokens.shape), at).flatten(0, 1).to(self.dtype)
        x = self._through(x, state, rotation)
        ancestry.count() if ancestry.even else ancestry.advance()
        return capped(self.head(x), self.softcap).view(*tokens.shape, -1)

    def _through(
        self, x: Float[Tensor, "M D"], state: BranchingState, rotation: Rotation | None
    ) -> Float[Tensor, "M D"]:
        """The vectors of the newest tokens after all layers."""
        ancestry = state.ancestry
        if ancestry.even and not x.is_cuda:
            if state.prepared is None:
                kept = [cache.kept() for cache in state.caches]
                state.prepared = EvenSteps(self.layers, kept, rotation)
            return state.prepared(x, ancestry.used)
        if rotation is not None and not x.is_cuda:
            rotation = rotation.at(ancestry.lengths)
        for layer, cache in zip(self.layers, state.caches, strict=True):
            x = layer(x, cache, ancestry, rotation)
        return x

    def _rotation(self, positions: int) -> Rotation:
        if positions not in self.rotations:
            position = cast(Rotary, self.position)
            self.rotations[positions] = Rotation.of(position, positions, self.table.device)
        return self.rotations[positions]


class FusedScorer:
    """Fused steps of a language model.

    Args:
        first: The token each row continues from.
        prompt: What is read before the first step.
    """

    def __init__(
        self,
        decoder: nn.Module,
        fused: FusedModel,
        first: Int[Tensor, " B"],
        prompt: Prompt | None,
    ) -> None:
        self.fused, self.first, self.prompt = fused, first, prompt
        self.compact_below = COMPACT_BELOW.get(first.device.type, 1.0)
        self.room = room_after(prompt, decoder, len(first))

    def begin(self, branches: int, length: int) -> BranchingState:
        """The state of all branches, after reading the prompts."""
        workspace = self.fused.workspace(len(self.first), branches, length, self.prompt)
        if self.prompt is not None:
            self.fused.read(self.prompt, workspace.caches)
        state = BranchingState(workspace.ancestry, workspace.caches, None, graph=workspace.graph)
        weakref.finalize(state, self.fused.put_back, workspace).atexit = False
        return state

    def step(
        self, tokens: Int[Tensor, "B W"], state: BranchingState
    ) -> tuple[Float[Tensor, "B W V"], BranchingState]:
        """Scores of the next token of every branch."""
        return stepped(partial(self.fused.score, state=state), tokens, state.graph), state


_FUSED: weakref.WeakKeyDictionary[LanguageModel, dict[torch.dtype, FusedModel]]
_FUSED = weakref.WeakKeyDictionary()


def fused_model(model: LanguageModel) -> FusedModel | None:
    """The model laid out for fused steps; None if it may change, or is of another kind."""
    weight = model.tokens.table.weight
    dtype, device = weight.dtype, weight.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
        if device == "cpu":
            return None
    if device != "cpu" and not (device == "cuda" and has_triton()):
        return None
    if not (model.frozen and can_fuse(model.decoder)):
        return None
    made = _FUSED.setdefault(model, {})
    if dtype not in made:
        made[dtype] = FusedModel(model, dtype)
    return made[dtype]


def can_fuse(stack: nn.Module) -> bool:
    """Whether a stack is of the usual kind: fused layers can do what it does."""
    return (
        isinstance(stack, Encoder | Decoder)
        and type(stack.position) in POSITIONS
        and isinstance(stack.norm, LayerNorm | RMSNorm)
        and all(map(_is_usual, stack.blocks))
    )


def _is_usual(block: nn.Module) -> bool:
    """Whether a block has nothing that fused layers lack."""
    if not isinstance(block, TransformerBlock) or block.cross_attention is not None:
        return False
    residuals = block.attention_residual, block.feedforward_residual
    attention, feedforward = block.attention, block.feedforward
    return (
        all(r.order == "pre" and isinstance(r.before, LayerNorm | RMSNorm) for r in residuals)
        and isinstance(feedforward, FeedForward | GatedFeedForward)
        and feedforward.activation in ACTIVATIONS
        and isinstance(attention, MultiHeadAttention)
        and attention.window is None
        and not (attention.scoring.qk_norm or attention.scoring.softcap)
        and attention.key_width == attention.value_width <= WIDEST
        and attention.to_out is not None
    )


def rounded(positions: int) -> int:
    """Up to a multiple of ROUND."""
    return -(-positions // ROUND) * ROUND
