"""Lines in another language than most others of a side, or of a text.

No language is known in advance. A line is an outlier if few of its words are *common* on its side,
and its letter trigrams are rare there; the more common words it has, the rarer these must be. In
most languages nearly every sentence has common words: a side where that does not hold, or that is
written without spaces, is skipped. A line does not count towards its own statistics: its own
trigrams and words are subtracted.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from zlib import crc32

import numpy as np
from jaxtyping import Int

from glassformer.tasks.shared.text_checks import is_spaced, words_of

CELLS = 1 << 16  # hash buckets for counts of words and of trigrams
SMOOTH = 0.05  # added to every trigram count
WORDS = 5  # distinct words that a line needs to be judged
COMMON, OFTEN = 0.01, 5  # a common word is in this share of the lines, and in this many lines
SOME = 0.4  # of an outlier's words are common, at most
FEW, NEARLY_ALL = 0.25, 0.95  # this share of the lines must have more common words than FEW
RARE = 1.2  # how much less likely, in mean log-probability, an outlier's trigrams are than usual,
MORE = 2.0  # plus this much times its share of common words
ENOUGH = 100  # lines needed to judge a side
FIRST = 1_000  # lines that are all judged at the end; of later ones, only candidates

SAME = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "IDEOGRAPHIC": "CJK", "BOPOMOFO": "CJK"}
NOT_LETTERS = re.compile(r"[\W\d_]+")

Pieces = Int[np.ndarray, " _"]  # hashed trigrams of a line


@dataclass(slots=True)
class LanguageOutliers:
    """The lines of a side that are not in its language.

    Attributes:
        lines: How many were long enough to be judged.
        few: How many of them, after the first, have few common words.
        kept: Lines to judge at the end: the number, the words and the trigrams of each.
        usual: The mean log-probability of trigrams, updated from time to time.
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
        """Count a line, given with its trigrams as numbers below CELLS."""
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
        """The row numbers of the outliers."""
        shares = [self._common(cells) for _, cells, _ in self.kept]
        few = self.few + sum(share <= FEW for share in shares[:FIRST])
        if self.lines < ENOUGH or few > (1 - NEARLY_ALL) * self.lines:
            return
        self._find_usual()
        for share, (number, _, pieces) in zip(shares, self.kept, strict=True):
            if share <= SOME and self._rarity(pieces) > RARE + MORE * share:
                yield number

    def _common(self, cells: list[int]) -> float:
        """The share of common words in a line that has been counted."""
        least = max(OFTEN, COMMON * self.lines)
        return sum(self.words[cell] > least for cell in cells) / len(cells)

    def _rarity(self, pieces: Pieces) -> float:
        """How much less likely than usual the trigrams are in a line that has been counted."""
        return self.usual - float(np.log((self.pieces[pieces] - 1 + SMOOTH) / self.total).mean())

    def _find_usual(self) -> None:
        count = int(self.pieces.sum())
        self.total = count + SMOOTH * CELLS
        self.usual = float(self.pieces @ np.log((self.pieces + SMOOTH) / self.total)) / count


def pieces_of(text: str) -> Pieces:
    """Letter trigrams, including word boundaries, as numbers below CELLS."""
    letters = NOT_LETTERS.sub(" ", f" {text.casefold()} ")
    codes = np.frombuffer(letters.encode("utf-32-le", "replace"), dtype=np.uint32).astype(np.int64)
    return (codes[:-2] * 1_000_003 + codes[1:-1] * 10_007 + codes[2:]) % CELLS


@lru_cache(maxsize=1 << 16)
def script_of(letter: str) -> str:
    """The script, by the first word of the letter's name.

    >>> script_of("ж"), script_of("ひ"), script_of("字")
    ('CYRILLIC', 'CJK', 'CJK')
    """
    name = unicodedata.name(letter, "UNKNOWN").split()[0]
    return SAME.get(name, name)
