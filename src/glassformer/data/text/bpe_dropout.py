"""BPE-dropout (Provilkov et al., 2020): a different segmentation each time a text is read.

Before every merge, each possible merge is dropped with probability `share`, and the best of the
rest is applied; when none remains, the word is done. The library can do it too, but its generator
cannot be seeded; ours is passed in, so the tokens of a row can be a function of (seed, epoch, row).
"""

from collections.abc import Iterator
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import chain, islice, pairwise, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.data.text.subwords import Bpe
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError

WORDS_REMEMBERED = 1 << 16
LONGEST_REMEMBERED = 64
NEVER = -1


class BpeDropout:
    """Encodes with randomly dropped merges; `share` 0 equals the tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if not isinstance(tokenizer.coder, Bpe):
            raise GlassformerError(
                f"BPE-dropout needs a tokenizer of kind bpe, got {tokenizer.kind}; "
                f"choose bpe, or remove the dropout"
            )
        self.tokenizer = tokenizer
        self._clean, self._cut = tokenizer.clean, tokenizer.coder.cut
        self._symbols, self._merges = tokenizer.coder.symbols(), tokenizer.coder.merges()
        self._plan = lru_cache(WORDS_REMEMBERED)(self._plan_of)

    def encode(self, text: str, share: float, rng: np.random.Generator) -> NDArray[np.int32]:
        """The tokens of a text; the same generator gives the same tokens."""
        if not 0 <= share <= 1:
            raise ValueError(f"share must lie in [0, 1], got {share}")
        draws = _draws(rng)
        tokens: list[int] = []
        for word in self._cut(self._clean(text)):
            plan = self._plan if len(word) <= LONGEST_REMEMBERED else self._plan_of
            symbols, full, steps = plan(word)
            first = list(islice(draws, steps))
            # While no best merge is dropped, the others do not matter: the result is known.
            if steps == 0 or min(first) >= share:
                tokens += full
            else:
                tokens += self._merge(symbols, share, chain(first, draws))[0]
        return np.array(tokens, dtype=np.int32)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process starts with an empty cache."""
        return BpeDropout, (self.tokenizer,)

    def _plan_of(self, word: str) -> tuple[list[int], list[int], int]:
        """A word's single bytes, its tokens without dropout, and the number of merges."""
        symbols = [self._symbols[character] for character in word]
        return symbols, *self._merge(symbols, 0.0, repeat(1.0))

    def _merge(
        self, symbols: list[int], share: float, draws: Iterator[float]
    ) -> tuple[list[int], int]:
        """Merge until no merge is possible or all are dropped; the tokens and number of merges."""
        merges = self._merges
        ids = [*symbols, NEVER]
        after = list(range(1, len(ids) + 1))  # a list linked both ways, so that a merge is quick
        before = list(range(-1, len(ids) - 1))
        heap = [
            (*merges[pair], at, *pair)
            for at, pair in enumerate(pairwise(symbols))
            if pair in merges
        ]
        heapify(heap)
        dropped = []
        steps = 0
        while heap:
            candidate = heappop(heap)
            _, merged, at, left, right = candidate
            behind = after[at]
            if ids[at] != left or ids[behind] != right:
                continue  # a merge next to it took one of the two
            if next(draws) < share:
                dropped.append(candidate)
                continue
            steps += 1
            ids[at], ids[behind] = merged, NEVER
            behind = after[at] = after[behind]
            before[behind] = at
            for place, pair in (
                (before[at], (ids[before[at]], merged)),
                (at, (merged, ids[behind])),
            ):
                if pair in merges:
                    heappush(heap, (*merges[pair], place, *pair))
            while dropped:
                heappush(heap, dropped.pop())
        return [token for token in ids if token != NEVER], steps


def _draws(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(256).tolist()
