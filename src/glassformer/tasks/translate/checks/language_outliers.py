"""Lines in a third language: unlike their own side, though the other side is no more like them.

No language is known beforehand. A line is an outlier when few of its words are *common* on its
side, and its letters follow each other in ways that are rare there; the more common words it has,
the rarer these must be. In most languages hardly a sentence does without common words: a side where
that is not so, or that is written without blanks, is left alone. A line never vouches for itself,
since its own words are taken off the counts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from jaxtyping import Int

from glassformer.tasks.shared.text_checks import is_spaced, words_of

CELLS = 1 << 16  # for counts, of words and of three letters in a row
SMOOTH = 0.05  # added to every count of three letters in a row
WORDS = 5  # different ones that a line must have to be judged
COMMON, OFTEN = 0.01, 5  # a word is common that is in such a share of the lines, and in so many
SOME = 0.4  # of the words of an outlier are common at most
FEW, NEARLY_ALL = 0.25, 0.95  # so many lines have more common words: otherwise they do not tell
RARE = 1.2  # how much less likely, as a mean logarithm, an outlier's letters are than usual,
MORE = 2.0  # and so much more than that for its share of common words
ENOUGH = 100  # lines to know a side by
FIRST = 1_000  # lines that are all judged at the end; of later ones, those that may be outliers

Pieces = Int[np.ndarray, " _"]  # of each line so many


@dataclass(slots=True)
class LanguageOutliers:
    """The lines of a side that are not in its language.

    Attributes:
        lines: How many were long enough to be judged.
        few: Those of them, after the first, that have few common words.
        kept: Lines to judge at the end: the number, the words and the pieces of each.
        usual: How likely pieces are on the whole, which is found out now and then.
    """

    lines: int = 0
    few: int = 0
    kept: list[tuple[int, list[int], Pieces]] = field(default_factory=list)
    words: list[int] = field(default_factory=lambda: [0] * CELLS)
    pieces: Int[np.ndarray, " cells"] = field(
        default_factory=lambda: np.zeros(CELLS, dtype=np.int64)
    )
    total: float = 0.0
    usual: float = 0.0
    due: int = 0

    def see(self, number: int, text: str, pieces: Pieces) -> None:
        """Take note of a line, given with three letters in a row as numbers below CELLS."""
        words = {word for word in words_of(text) if word[0].isalpha() and is_spaced(word)}
        if len(words) < WORDS:
            return
        cells = [crc32(word.encode("utf-8", "replace")) % CELLS for word in words]
        self.lines += 1
        for cell in cells:
            self.words[cell] += 1
        np.add.at(self.pieces, pieces, 1)
        if self.lines >= max(FIRST, self.due):
            self._find_usual()
            self.due = 2 * self.lines
        if self.lines <= FIRST:
            self.kept.append((number, cells, pieces))
            return
        share = self._common(cells)
        self.few += share <= FEW
        if share <= SOME and self._rarity(pieces) > RARE / 2:
            self.kept.append((number, cells, pieces))

    def found(self) -> Iterator[int]:
        """The numbers of the outliers."""
        shares = [self._common(cells) for _, cells, _ in self.kept]
        few = self.few + sum(share <= FEW for share in shares[:FIRST])
        if self.lines < ENOUGH or few > (1 - NEARLY_ALL) * self.lines:
            return
        self._find_usual()
        for share, (number, _, pieces) in zip(shares, self.kept, strict=True):
            if share <= SOME and self._rarity(pieces) > RARE + MORE * share:
                yield number

    def _common(self, cells: list[int]) -> float:
        """The share of the words of a line, which are counted by now, that are common."""
        least = max(OFTEN, COMMON * self.lines)
        return sum(self.words[cell] > least for cell in cells) / len(cells)

    def _rarity(self, pieces: Pieces) -> float:
        """How much less likely the pieces of a line, which are counted by now, are than usual."""
        return self.usual - float(np.log((self.pieces[pieces] - 1 + SMOOTH) / self.total).mean())

    def _find_usual(self) -> None:
        count = int(self.pieces.sum())
        self.total = count + SMOOTH * CELLS
        self.usual = float(self.pieces @ np.log((self.pieces + SMOOTH) / self.total)) / count
