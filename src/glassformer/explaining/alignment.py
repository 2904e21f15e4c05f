"""Alignment: which words of the source each word of a translation attended to.

A translator's decoder attends to the source before it chooses each token: with the heads of its
cross-attention, or with the additive attention of a GRU (Bahdanau et al., 2014). The translation is
read once more by a copy that shares the weights, and its attention is averaged over heads and
layers. A target word's weights are the average over its tokens, a source word's the sum over its
tokens.

    alignment = glassformer.align(run, "早上好！")
    alignment.source, alignment.target, alignment.weights, alignment.links
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.explaining.watching import cross_attention
from glassformer.models.transformer import Transformer
from glassformer.notebook import escaped, heat
from glassformer.terminal import aligned

STRONG, UNIFORM = 0.5, 3.0  # see `strengths`


@dataclass(frozen=True, eq=False, slots=True)
class Alignment:
    """Words of both sides, and how much each target word attended to each source word.

    Attributes:
        weights: Where a row sums to less than 1, the rest went to special tokens, such as the end.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Float[Tensor, "target source"]

    @property
    def links(self) -> list[tuple[int, int]]:
        """(source, target) for each target word: the source word that it attended to most."""
        if not self.source:
            return []
        return [(best, word) for word, best in enumerate(self.weights.argmax(-1).tolist())]

    @property
    def strengths(self) -> Float[Tensor, "target source"]:
        """The weights as they are drawn: 1 for the largest.

        If the weights are about uniform, none is drawn at full strength: that takes a weight of
        STRONG, or of UNIFORM times a uniform weight if that is less.
        """
        if not self.weights.numel():
            return self.weights
        full = min(STRONG, UNIFORM / len(self.source))
        return self.weights / self.weights.amax().clamp(min=full)

    def __repr__(self) -> str:
        """Each target word with the source word that it attended to most, and its weight."""
        lines = [
            (self.target[word], self.source[best], f"{float(self.weights[word, best]):.2f}")
            for best, word in self.links
        ]
        return f"Alignment of {len(self.target)} words\n{aligned(lines)}".rstrip()

    def _repr_html_(self) -> str:
        """A table that is dark where a target word attended to a source word."""
        head = "".join(f"<th>{escaped(word)}</th>" for word in self.source)
        rows = "".join(
            f"<tr><th>{escaped(word)}</th>"
            + "".join(
                f'<td style="{heat(strength)}" title="{weight:.2f}"></td>'
                for strength, weight in zip(strengths, weights, strict=True)
            )
            + "</tr>"
            for word, strengths, weights in zip(
                self.target, self.strengths.tolist(), self.weights.tolist(), strict=True
            )
        )
        return f"<table><tr><th></th>{head}</tr>{rows}</table>"

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "source": list(self.source),
            "target": list(self.target),
            "weights": [[round(w, 4) for w in line] for line in self.weights.tolist()],
            "links": [list(link) for link in self.links],
        }


def as_written(words: Sequence[str], text: str, read: str) -> tuple[str, ...]:
    """The words as they are written in the text, before case or script were normalised.

    >>> as_written(["这", "书"], "這本書", "这本书")
    ('這', '書')

    Words that are not found stay as they are, as do all words if normalising changed the length.
    """
    if len(text) != len(read):
        return tuple(words)
    found, start = [], 0
    for word in words:
        place = read.find(word, start)
        if place < 0:
            found.append(word)
            continue
        start = place + len(word)
        found.append(text[place:start])
    return tuple(found)


def cross_attention_weights(
    model: Transformer, source: Sequence[int], decoder_input: Sequence[int]
) -> Float[Tensor, "layers H T S"]:
    """The weight of each source token in each layer and head, when each next token is chosen.

    Args:
        decoder_input: The token before each target token: the start, and all but the last.
    """
    device = model.target.table.weight.device
    ids = [torch.tensor([row], device=device) for row in (source, decoder_input)]
    reads, writes = (Layout.full(1, len(row), device) for row in (source, decoder_input))
    _, weights = cross_attention(model, lambda watched: watched(*ids, source=reads, target=writes))
    return weights


def align_words(
    reader: Tokenizer,
    writer: Tokenizer,
    source: Sequence[int],
    target: Sequence[int],
    weights: Float[Tensor, "T S"],
) -> Alignment:
    """Attention between tokens, merged into attention between words."""
    reads, source_words = word_table(reader, source)
    writes, target_words = word_table(writer, target)
    merged = writes / writes.sum(1, keepdim=True) @ weights @ reads.mT
    return Alignment(source_words, target_words, merged)


def word_table(
    tokens: Tokenizer, ids: Sequence[int]
) -> tuple[Float[Tensor, "words tokens"], tuple[str, ...]]:
    """Which tokens belong to each word, and the words; special tokens and spaces are skipped.

    A text of a single word, such as a name to be spelt, is split into its tokens.
    """
    every, special = np.array(ids), (Tokenizer.mask, Tokenizer.start, Tokenizer.end)
    real = ~np.isin(every, special) & (every < tokens.size)  # language tags come after the tokens
    numbers = np.full(len(ids), -1)
    numbers[real] = tokens.word_of(every[real])
    if numbers.max(initial=-1) < 1:
        numbers = np.where(real, np.arange(len(ids)), -1)
    rows, words = [], []
    for number in np.unique(numbers[real]):
        its_own = numbers == number
        word = tokens.decode(every[its_own]).strip()
        if word:
            rows.append(its_own)
            words.append(word)
    table = torch.from_numpy(np.array(rows, dtype=np.float32).reshape(-1, len(ids)))
    return table, tuple(words)
