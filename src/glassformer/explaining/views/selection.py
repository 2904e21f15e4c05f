"""The attention that a view shows: one layer and head, or their average.

Layers and heads are counted from 0, as in the paths of the modules and by `--ablate`. Without a
choice, it is the average of all layers and heads of the attention that explains most: that to the
source, where there is one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from glassformer.errors import GlassformerError
from glassformer.explaining.parts import AttentionMap

ACROSS, ALONE = "cross", "layers"  # attention to a source; that of a model of one stack
TITLES = {ACROSS: "cross-attention", ALONE: "self-attention"}


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Group:
    """Layers that connect the same tokens.

    Attributes:
        name: The part of the model, or `cross` for cross-attention.
        layers: By their number.
    """

    name: str
    layers: dict[int, AttentionMap]

    @property
    def title(self) -> str:
        """In words."""
        return TITLES.get(self.name, self.name)

    @property
    def crosses(self) -> bool:
        """Whether it looks at a source."""
        return self.name == ACROSS


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Selection:
    """What is shown of all attention; None stands for the average over layers or heads."""

    group: Group
    layer: int | None = None
    head: int | None = None

    @property
    def title(self) -> str:
        """In words."""
        layer = "all layers" if self.layer is None else f"layer {self.layer}"
        head = "all heads" if self.head is None else f"head {self.head}"
        return f"{self.group.title}, {layer}, {head}"

    @property
    def attention(self) -> AttentionMap:
        """The chosen weights, as a map of one head."""
        layers = self.group.layers
        some = list(layers.values()) if self.layer is None else [layers[self.layer]]
        if self.head is None:
            weights = torch.stack([one.weights.float().mean(0) for one in some]).mean(0)
        else:
            weights = torch.stack([one.weights[self.head].float() for one in some]).mean(0)
        first = some[0]
        return AttentionMap(
            name=self.title, queries=first.queries, keys=first.keys, weights=weights[None]
        )


def grouped(maps: Sequence[AttentionMap]) -> list[Group]:
    """Layers by what they connect, in the order of the model; each with its own tokens."""
    found: dict[tuple[str, tuple[str, ...], tuple[str, ...]], Group] = {}
    for one in maps:
        name, number = layer_of(one.name)
        group = found.setdefault((name, one.queries, one.keys), Group(name=name, layers={}))
        while number in group.layers:  # the layers of an ensemble's members are counted on
            number += 1
        group.layers[number] = one
    return list(found.values())


def layer_of(name: str) -> tuple[str, int]:
    """The part of the model that a layer of attention belongs to, and its number there.

    >>> layer_of("decoder.blocks.2.cross_attention"), layer_of("encoder.blocks.0.attention")
    (('cross', 2), ('encoder', 0))
    """
    parts = name.split(".")
    number = next((int(part) for part in parts if part.isdigit()), 0)
    if "cross" in parts[-1]:
        return ACROSS, number
    return ALONE if parts[0] in ("blocks", "attention") else parts[0], number


def select(
    maps: Sequence[AttentionMap], *, layer: str | None = None, head: int | None = None
) -> Selection | None:
    """The chosen attention; None if there is none at all.

    Args:
        layer: A number, or a part of the model and a number, such as `encoder.2`.
    """
    groups = grouped(maps)
    if not groups:
        if layer is None and head is None:
            return None
        raise GlassformerError("this explanation has no attention; leave out the layer and head")
    group = next((one for one in groups if one.crosses), groups[0])
    number = None
    if layer is not None:
        group, number = _layer(groups, group, layer)
    some = group.layers.values() if number is None else [group.layers[number]]
    heads = min(one.weights.shape[0] for one in some)
    if head is not None and not 0 <= head < heads:
        raise GlassformerError(f"there is no head {head}; choose from 0 to {heads - 1}")
    return Selection(group=group, layer=number, head=head)


def _layer(groups: Sequence[Group], usual: Group, layer: str) -> tuple[Group, int]:
    name, _, number = layer.rpartition(".")
    for group in groups if name else [usual]:
        if number.isdigit() and int(number) in group.layers and name in ("", group.name):
            return group, int(number)
    names = [f"{group.name}.{number}" for group in groups for number in group.layers]
    raise GlassformerError(f"there is no layer {layer!r}; choose from {', '.join(names)}")
