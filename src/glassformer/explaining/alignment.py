"""Alignment: which words of the source each word of an answer looked at.

A translator's decoder looks across at the source before it says each token: with the heads of its
cross-attention, or with the one additive attention of a GRU (Bahdanau et al., 2014). The answer is
read once more by a twin that shares the weights, and its looks are averaged over heads and layers.
What a word looked at is the average of its tokens; what is taken of a word is the sum of its own.

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
from glassformer.explaining.watching import watching
from glassformer.models.baselines.bahdanau import BahdanauDecoder
from glassformer.models.transformer import Transformer

STRONG, EVENLY = 0.5, 3.0  # see `strengths`


@dataclass(frozen=True, eq=False, slots=True)
class Alignment:
    """Words of both sides, and how much each word of the answer took from each of the source.

    Attributes:
        weights: What a line lacks to 1 was taken from marks, such as the end of the source.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: Float[Tensor, "target source"]

    @property
    def links(self) -> list[tuple[int, int]]:
        """(source, target) for each word of the answer: the word that it took most from."""
        if not self.source:
            return []
        return [(best, word) for word, best in enumerate(self.weights.argmax(-1).tolist())]

    @property
    def strengths(self) -> Float[Tensor, "target source"]:
        """The weights as they are drawn: 1 for the largest of all.

        Where all are about even there is no large one: what is drawn in full is STRONG, or at
        least EVENLY times what looking at every word alike would give.
        """
        if not self.weights.numel():
            return self.weights
        in_full = min(STRONG, EVENLY / len(self.source))
        return self.weights / self.weights.amax().clamp(min=in_full)

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "source": list(self.source),
            "target": list(self.target),
            "weights": [[round(w, 4) for w in line] for line in self.weights.tolist()],
            "links": [list(link) for link in self.links],
        }


def as_written(words: Sequence[str], text: str, read: str) -> tuple[str, ...]:
    """The words as they stand in the text, not as the model reads it: in one case or script.

    >>> as_written(["这", "书"], "這本書", "这本书")
    ('這', '書')

    A word that is found nowhere stays, as do all where the text is read with more characters.
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


def looks_across(
    model: Transformer, source: Sequence[int], told: Sequence[int]
) -> Float[Tensor, "layers H T S"]:
    """What each layer and head took from each token of the source, while the next was chosen.

    Args:
        told: What stands before each token: the start, and all tokens but the last.
    """
    device = model.target.table.weight.device
    ids = [torch.tensor([row], device=device) for row in (source, told)]
    reads, writes = (Layout.full(1, len(row), device) for row in (source, told))
    steps: list[Tensor] = []
    with watching(model) as (twin, maps):
        if isinstance(twin.decoder, BahdanauDecoder):
            scorer = twin.decoder.attention.to_score
            scorer.register_forward_hook(lambda _, given, scores: steps.append(scores))
        twin(*ids, source=reads, target=writes)
    if steps:  # (1, S, 1) each
        return torch.cat(steps, -1).mT.softmax(-1)[:, None]
    return torch.cat([look for name, look in maps.items() if name.endswith("cross_attention")])


def merged(
    reader: Tokenizer,
    writer: Tokenizer,
    source: Sequence[int],
    target: Sequence[int],
    looks: Float[Tensor, "T S"],
) -> Alignment:
    """Looks between tokens as looks between words."""
    reads, source_words = word_table(reader, source)
    writes, target_words = word_table(writer, target)
    weights = writes / writes.sum(1, keepdim=True) @ looks @ reads.mT
    return Alignment(source_words, target_words, weights)


def word_table(
    tokens: Tokenizer, ids: Sequence[int]
) -> tuple[Float[Tensor, "words tokens"], tuple[str, ...]]:
    """Which tokens belong to each word, and what the words are; marks and blanks are no words.

    A text of one word, such as a name to be spelt, falls into its tokens.
    """
    every, marks = np.array(ids), (Tokenizer.mask, Tokenizer.start, Tokenizer.end)
    real = ~np.isin(every, marks) & (every < tokens.size)  # beyond stand the tags of languages
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
