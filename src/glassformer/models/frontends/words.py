"""Words of texts that are read by characters: a vector for each word and each phrase ending in it.

    vector = √D (word[known] + Σₙ phrases[hash of the last n words]),   where the word ends

A word is a run of characters of one kind, and its number is a hash of them, so any word can be
read, and no vocabulary has to be learned. Words share a fixed number of vectors, and phrases as
many; they start at zero. A word with a masked character is hidden as a whole; a masked blank joins
its neighbours to one hidden word. Between the ends of words there is nothing:
`models/word_level.py` has an encoder and a pool that read the ends alone.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout, pack, pad
from glassformer.core.shapes import Vectors
from glassformer.models.frontends.ngrams import MIXER, PRIME, ngrams_ending

BETWEEN, ALONE = 0, 1  # kinds of characters; two neighbours of any other kind are of one word


@dataclass(frozen=True, eq=False, slots=True)
class Spelling:
    """How words are written in the tokens of a vocabulary.

    Attributes:
        kinds: The kind of each token: `BETWEEN` words, a word `ALONE`, or one whose runs are words.
        mask: The token that hides another.
    """

    kinds: Int[np.ndarray, " V"]
    mask: int


@dataclass(frozen=True, eq=False, slots=True)
class WordEnds:
    """Where the words of padded rows end.

    Attributes:
        layout: Of the words.
        places: The place of each word's last character; beyond the words of a row, other places.
    """

    layout: Layout
    places: Int[Tensor, "B W"]

    def gather(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B W D"]:
        """The vectors where words end."""
        return x.gather(1, self.places[..., None].expand(-1, -1, x.shape[-1]))

    def scatter(self, x: Float[Tensor, "B W D"], longest: int) -> Float[Tensor, "B T D"]:
        """Vectors of words where these end, and zeros elsewhere."""
        x = x * self.layout.real[..., None]
        rows = x.new_zeros(len(x), longest, x.shape[-1])
        return rows.scatter(1, self.places[..., None].expand_as(x), x)


class WordPhrases(nn.Module):
    """Looks up words and phrases in rows of characters.

    Args:
        longest: The longest phrase, in words.
        buckets: Number of vectors, half of them for single words.
        salt: Which words and phrases share one: others with another salt.
        scale: Whether vectors are multiplied by √D.
    """

    kinds: Tensor

    def __init__(
        self,
        spelling: Spelling,
        dim: int,
        *,
        longest: int,
        buckets: int,
        salt: int = 0,
        scale: bool = True,
    ) -> None:
        super().__init__()
        self.dim, self.longest, self.mask, self.salt = dim, longest, spelling.mask, salt
        self.scale = math.sqrt(dim) if scale else 1.0
        self.register_buffer("kinds", torch.tensor(spelling.kinds).long(), persistent=False)
        self.word = nn.Embedding(2, dim)  # any word, and a hidden one
        self.phrases = nn.Embedding(buckets, dim)
        nn.init.normal_(self.word.weight, std=dim**-0.5)
        nn.init.zeros_(self.phrases.weight)

    def forward(
        self, tokens: Int[Tensor, "B T"] | Int[Tensor, " N"], layout: Layout
    ) -> tuple[Vectors, Layout]:
        """Vectors where words end, which the layout keeps for the modules that read them."""
        rows = pad(tokens, layout) if layout.is_packed else tokens
        found, numbers, hidden = self._words(rows, layout)
        layout.memo[WordEnds] = found
        # before the first word stands the start of the row, which phrases may begin with
        phrases = self._phrases(F.pad(numbers, (1, 0)), F.pad(hidden, (1, 0)))[:, 1:]
        x = found.scatter((self.word(hidden.long()) + phrases) * self.scale, layout.longest)
        return (pack(x, layout) if layout.is_packed else x), layout

    def _phrases(
        self, numbers: Int[Tensor, "B W"], hidden: Bool[Tensor, "B W"]
    ) -> Float[Tensor, "B W D"]:
        """The sum of the phrases that end in each word; they begin after a hidden one."""
        at = torch.arange(numbers.shape[1], device=numbers.device)
        latest = torch.where(hidden, at, -1).cummax(1).values
        sizes, half = range(1, self.longest + 1), self.phrases.num_embeddings // 2
        buckets, whole = ngrams_ending(numbers, at - latest - 1, sizes, half, self.salt)
        buckets[1:] += half  # single words share their vectors with no longer phrases
        return (self.phrases(buckets) * whole[..., None]).sum(0)

    def _words(
        self, tokens: Int[Tensor, "B T"], layout: Layout
    ) -> tuple[WordEnds, Int[Tensor, "B W"], Bool[Tensor, "B W"]]:
        """The words of padded rows, their numbers, and which are hidden."""
        kinds = self.kinds[tokens].masked_fill(~layout.as_padded().real, BETWEEN)
        joined = (kinds[:, 1:] == kinds[:, :-1]) & (kinds[:, 1:] > ALONE)
        ends = (kinds != BETWEEN) & ~F.pad(joined, (0, 1))
        starts = (kinds != BETWEEN) & ~F.pad(joined, (1, 0))
        at = torch.arange(tokens.shape[1], device=tokens.device)
        first = torch.where(starts, at, 0).cummax(1).values  # of the word of each character

        counts = ends.sum(1)
        most = layout.longest  # which a GPU need not be waited for
        if counts.device.type == "cpu" and counts.numel():
            most = min(most, max(1, int(counts.max())))
        places = (~ends).byte().argsort(dim=1, stable=True)[:, :most]  # (B, W)
        from_first = first.gather(1, places)

        def inside(values: Int[Tensor, "B T"]) -> Int[Tensor, "B W"]:
            """The sum of the values in each word."""
            total = values.cumsum(1)
            return total.gather(1, places) - (total - values).gather(1, from_first)

        letters = (tokens * PRIME + (at - first) * MIXER) % (1 << 31)
        letters = (letters ^ (letters >> 15)) * MIXER % (1 << 31)
        hidden = inside((tokens == self.mask).long()) > 0
        layout = Layout.padded(counts, longest=most)
        return WordEnds(layout, places), inside(letters) % (1 << 31), hidden
