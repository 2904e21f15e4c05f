"""Ablation: a copy of a model without some of its heads or layers, to see what they are worth.

A head is named by layer and number, both from 0, as in the paths of the modules:

    3.5            head 5 of layer 3                 decoder.3.5   where there are several stacks
    3              layer 3 as a whole, left out      cross.3.5     of a decoder's cross-attention
                                                     cross.3       all heads of that
    encoder.members.1.3.5      the same of member 1 of an ensemble

An ablated head adds nothing to the output of its layer: its columns of the output projection are
zero. All other weights are shared with the model, which itself is unchanged. Michel et al., "Are
Sixteen Heads Really Better than One?", 2019.
"""

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

from torch import nn

from glassformer.core.caches import Cache, Memory
from glassformer.core.int8 import Int8Linear
from glassformer.core.layer import AttentionLayer
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask
from glassformer.core.positions import Position
from glassformer.core.shapes import MemoryVectors, Vectors
from glassformer.errors import GlassformerError
from glassformer.explaining.copies import Model, eager_copy, linear_of
from glassformer.models.blocks import Block

ATTENTION = re.compile(
    r"(?:(.+?)(?:\.inside)?\.)?(?:blocks|layers)\.(\d+)\.(attention|cross_attention)"
)
MEMBER = re.compile(r"\.members\.\d")
LAYER = re.compile(r"(?:(.+?)(?:\.inside)?\.)?blocks\.(\d+)")


@dataclass(frozen=True, slots=True)
class Part:
    """A head, or a layer as a whole.

    Attributes:
        label: What people call it, such as 3.5.
        path: Of its attention layer in the model, or of its block.
        head: None for a layer as a whole.
    """

    label: str
    path: str
    head: int | None = None


def heads_of(model: nn.Module) -> list[Part]:
    """Every head of a model that can be ablated, in the order of the layers."""
    found = [
        (_stack_of(match), match[2], name, module.heads)
        for name, module in model.named_modules()
        if isinstance(module, AttentionLayer) and (match := ATTENTION.fullmatch(name))
    ]
    alone = len({stack for stack, *_ in found}) == 1
    return [
        Part(f"{layer}.{head}" if alone else f"{stack}.{layer}.{head}", path, head)
        for stack, layer, path, heads in found
        for head in range(heads)
    ]


def layers_of(model: nn.Module) -> list[Part]:
    """Every layer of a model that can be left out."""
    found = [
        (match[1], match[2], name)
        for name, module in model.named_modules()
        if isinstance(module, Block) and (match := LAYER.fullmatch(name))
    ]
    alone = len({stack for stack, *_ in found}) == 1
    return [Part(layer if alone else f"{stack}.{layer}", path) for stack, layer, path in found]


def named_parts(model: nn.Module, names: str) -> list[Part]:
    """The heads and layers in a list such as `3.5, 4`; refused if there is no such one."""
    there = {part.label: part for part in (*layers_of(model), *heads_of(model))}
    if not there:
        raise GlassformerError(
            "this model has no heads to ablate; use one whose encoder or decoder is of kind "
            "attention"
        )
    found = []
    for name in (name.strip() for name in names.split(",")):
        inside = [part for label, part in there.items() if label.startswith(f"{name}.")]
        if name not in there and not (name.startswith("cross.") and inside):
            example, several = ", ".join(_ends(list(there))), any(map(MEMBER.search, there))
            first = "a member of the ensemble, a layer" if several else "a layer"
            raise GlassformerError(
                f"{name!r} is no head or layer of this model; give {first} and a head, counted "
                f"from 0: {example}"
            )
        found += [there[name]] if name in there else inside
    return found


def ablated(model: Model, parts: Collection[Part]) -> Model:
    """A copy that shares the weights, without these heads and layers."""
    twin, silent = eager_copy(model), defaultdict[str, list[int]](list)
    for part in parts:
        if part.head is not None:
            silent[part.path].append(part.head)
    for path, heads in silent.items():
        layer = twin.get_submodule(path)
        assert isinstance(layer, AttentionLayer)
        silence(layer, heads)
    gone = {part.path.rpartition(".") for part in parts if part.head is None}
    for stack, _, number in sorted(gone, key=lambda path: int(path[2]), reverse=True):
        blocks = twin.get_submodule(stack)
        assert isinstance(blocks, nn.ModuleList)
        if len(blocks) == 1:
            blocks[0] = Skipped(cast(Block, blocks[0]))
        else:
            del blocks[int(number)]
    return twin


class Skipped(Block):
    """The only layer of a stack, left out: its input passes through, and caches still count it."""

    def __init__(self, block: Block) -> None:
        super().__init__()
        self.block = block

    def forward(
        self,
        x: Vectors,
        *,
        layout: Layout,
        mask: Mask,
        position: Position | None = None,
        cache: Cache | None = None,
        memory: Memory | None = None,
    ) -> Vectors:
        """The vectors as they are, in the same layout."""
        if cache is not None:
            self.block(x, layout=layout, mask=mask, position=position, cache=cache, memory=memory)
        return x

    def new_cache(self) -> Cache:
        return self.block.new_cache()

    def keep(self, memory: MemoryVectors, layout: Layout) -> Memory:
        return self.block.keep(memory, layout)


def silence(layer: AttentionLayer, heads: Collection[int]) -> None:
    """Let these heads of a layer add nothing to its output."""
    if layer.to_out is None:
        raise ValueError(
            "heads without an output projection cannot be told apart; use project=True"
        )
    old = layer.to_out
    weight = old.weight.detach().clone()
    weight.unflatten(1, (layer.heads, -1))[:, list(heads)] = 0
    new = nn.Parameter(weight, requires_grad=old.weight.requires_grad)
    layer.to_out = (
        Int8Linear(new, old.bias) if isinstance(old, Int8Linear) else linear_of(new, old.bias)
    )


def _stack_of(match: re.Match[str]) -> str:
    return "cross" if match[3] == "cross_attention" else match[1] or "stack"


def _ends(labels: list[str]) -> list[str]:
    """The first and the last head of each stack, for an error message."""
    heads = defaultdict[str, list[str]](list)
    for label in labels:
        heads[re.sub(r"\d+", "", label)].append(label)
    return [f"{found[0]} to {found[-1]}" for found in heads.values()]
