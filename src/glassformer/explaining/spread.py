"""Attention between words, shown between the characters that they end in.

Members of an ensemble may read words in rows of characters (`models/word_level.py`). Their weights
stand where words end, with zeros elsewhere, so that those of all members have one form.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.kinds.linformer import Linformer
from glassformer.explaining.recording import Choice, Recording, Shape, chosen
from glassformer.models.frontends.words import WordEnds
from glassformer.models.word_level import WordEncoder, WordPool, word_ends

Recordings = MutableMapping[str, Recording]


@dataclass(frozen=True, eq=False, slots=True)
class Spread(Recording):
    """Weights of words, zero but where these end.

    Attributes:
        longest: The number of characters of a row.
        queries: Whether queries are words; a pool has one that is not.
        keys: Whether keys are words; those of a Linformer are not.
    """

    inside: Recording
    words: WordEnds
    longest: int
    queries: bool
    keys: bool

    @property
    def shape(self) -> Shape:
        rows, heads, queries, keys = self.inside.shape
        return (
            rows,
            heads,
            self.longest if self.queries else queries,
            self.longest if self.keys else keys,
        )

    def rows(self, heads: Choice, queries: Choice) -> Float[Tensor, "B h t S"]:
        weights = self.spread(self.inside.rows(heads, None))
        if queries is None:
            return weights
        return weights[:, :, chosen("queries", queries, weights.shape[2])]

    def spread(self, weights: Float[Tensor, "B h t W"]) -> Float[Tensor, "B h T S"]:
        """Numbers of words, where these end."""
        heads = weights.shape[1]
        if self.keys:
            keys = self.words.scatter(weights.flatten(1, 2).mT, self.longest)  # (B, S, h * t)
            weights = keys.mT.unflatten(1, (heads, -1))
        if self.queries:
            rows = self.words.scatter(weights.transpose(1, 2).flatten(2), self.longest)
            weights = rows.unflatten(2, (heads, -1)).transpose(1, 2)
        return weights


def unspread(one: Recording) -> Recording:
    """What was recorded of words, before it was spread."""
    return one.inside if isinstance(one, Spread) else one


def spread_words(model: nn.Module, recordings: Recordings) -> None:
    """Have all that is recorded inside of modules of words stand where the words end."""
    for name, module in model.named_modules():
        if isinstance(module, WordEncoder | WordPool):
            module.register_forward_hook(partial(_spread, name, recordings), with_kwargs=True)


def _spread(
    name: str,
    recordings: Recordings,
    module: nn.Module,
    args: tuple[Any, ...],
    call: dict[str, Any],
    _: Tensor,
) -> None:
    layout = call["layout"] if "layout" in call else args[1]
    words, queries = word_ends(layout), isinstance(module, WordEncoder)
    for layer, one in recordings.items():
        if layer.startswith(f"{name}."):
            attention = module.get_submodule(layer.removeprefix(f"{name}."))
            keys = not isinstance(attention, Linformer)
            recordings[layer] = Spread(one, words, layout.longest, queries, keys)
