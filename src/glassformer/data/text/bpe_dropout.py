"""BPE-dropout (Provilkov et al., 2020): the same text in other tokens each time it is read.

Before every merge, each merge that is possible is left out with probability `share`, and the best
of those that remain is made; when none remains, the word is done. The library can do it too, but
its generator cannot be seeded; ours is handed in, so a row's tokens can be a function of (seed,
epoch, row).
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
    """Encodes with merges left out by chance; `share` 0 is the tokenizer's own answer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if not isinstance(tokenizer.coder, Bpe):
            raise GlassformerError(
                f"BPE-dropout needs a tokenizer of kind bpe, got {tokenizer.kind}; "
                f"choose bpe, or leave the dropout out"
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
            symbols, whole, steps = plan(word)
            first = list(islice(draws, steps))
            # While no best merge is left out, the others do not matter: the answer is known.
            if steps == 0 or min(first) >= share:
                tokens += whole
            else:
                tokens += self._merge(symbols, share, chain(first, draws))[0]
        return np.array(tokens, dtype=np.int32)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process starts with nothing remembered."""
        return BpeDropout, (self.tokenizer,)

    def _plan_of(self, word: str) -> tuple[list[int], list[int], int]:
        """A word's single bytes, its tokens when nothing is left out, and the merges that takes."""
        symbols = [self._symbols[character] for character in word]
        return symbols, *self._merge(symbols, 0.0, repeat(1.0))

    def _merge(
        self, symbols: list[int], share: float, draws: Iterator[float]
    ) -> tuple[list[int], int]:
        """Merge until no merge is possible or all are left out; the tokens and how many merges."""
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
        left_out = []
        steps = 0
        while heap:
            candidate = heappop(heap)
            _, made, at, left, right = candidate
            behind = after[at]
            if ids[at] != left or ids[behind] != right:
                continue  # a merge next to it took one of the two
            if next(draws) < share:
                left_out.append(candidate)
                continue
            steps += 1
            ids[at], ids[behind] = made, NEVER
            behind = after[at] = after[behind]
            before[behind] = at
            for place, pair in (
                (before[at], (ids[before[at]], made)),
                (at, (made, ids[behind])),
            ):
                if pair in merges:
                    heappush(heap, (*merges[pair], place, *pair))
            while left_out:
                heappush(heap, left_out.pop())
        return [token for token in ids if token != NEVER], steps


def _draws(rng: np.random.Generator) -> Iterator[float]:
    while True:
        yield from rng.random(256).tolist()
