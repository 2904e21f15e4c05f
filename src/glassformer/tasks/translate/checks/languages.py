"""Languages of pairs: lines that do not look like the rest of their side.

Three signs are checked, without knowing any language. The *script*: nearly all lines of a side have
some Cyrillic, and this one has letters but no Cyrillic. If both sides share a script, the *letter
trigrams*: this line resembles the other side far more than its own. The statistics of each side
come from its first lines. And a line may be in a third language, unlike both sides: see
`language_outliers`.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.doctor.check import Check, Finding, Specimen
from glassformer.tasks.shared.language_outliers import (
    CELLS,
    SMOOTH,
    LanguageOutliers,
    pieces_of,
    script_of,
)
from glassformer.wording import counted

SIDES = ("source", "target")
READ = 200  # characters of a line that are examined
NEARLY_ALL = 0.95  # of the lines of a side have its script
ENOUGH = 50  # lines needed to judge a side
LETTERS = 4  # distinct letters needed to judge a script; fewer: OK, Tom

LEARNED = 2_000  # lines of each side for its statistics
PIECES = 12  # known trigrams that a line needs to be judged
SURE = 1.0  # by how much, in mean log-probability, the other side must make it likelier
MANY = 0.001  # of the lines: more are not an accident
BY_CHANCE = 2  # lines that may only seem to be in a third language

Pieces = Int[np.ndarray, " _"]  # hashed trigrams of a line


@dataclass(frozen=True, slots=True)
class Side:
    """How often each trigram occurs in the first lines of a side, and their total."""

    counts: Int[np.ndarray, " cells"]
    total: int

    @classmethod
    def of(cls, lines: Sequence[Pieces]) -> "Side":
        """The statistics of some lines."""
        counts = np.bincount(np.concatenate(lines), minlength=CELLS)
        return cls(counts, int(counts.sum()))

    def log_probabilities(self, counts: Pieces) -> Float[np.ndarray, " _"]:
        """The log-probabilities of trigrams with these counts."""
        return np.log((counts + SMOOTH) / (self.total + SMOOTH * CELLS))


class PairLanguages(Check):
    """Lines in another language than the rest of their side."""

    slow = True

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.scripts: dict[str, int] = {}  # a bit for each script
        self.written: dict[str, array[int]] = {side: array("Q") for side in SIDES}
        self.first: list[tuple[int, tuple[Pieces, Pieces]]] = []  # lines for the statistics
        self.sides: tuple[Side, Side] | None = None
        self.swapped: dict[str, list[int]] = {side: [] for side in SIDES}
        self.outliers = {side: LanguageOutliers() for side in SIDES}

    def see(self, row: Specimen) -> None:
        texts = [row.sample[side][:READ] for side in SIDES]
        self.numbers.append(row.number)
        for side, text in zip(SIDES, texts, strict=True):
            self.written[side].append(self._scripts_in(text))
        pieces = (pieces_of(texts[0]), pieces_of(texts[1]))
        for side, text, some in zip(SIDES, texts, pieces, strict=True):
            self.outliers[side].see(row.number, text, some)
        if self.sides is not None:
            self._judge(row.number, pieces)
        else:
            self.first.append((row.number, pieces))
            if len(self.first) == LEARNED:
                self._learn()

    def findings(self) -> Iterator[Finding]:
        if self.sides is None and len(self.first) >= ENOUGH:
            self._learn()
        for side in SIDES:
            sure = {*self._in_other_scripts(side), *self.swapped[side]}
            outliers = {*self.outliers[side].found()} - sure
            rows = sorted(sure | outliers)
            if rows:
                share = len(rows) / len(self.numbers)
                many = share >= MANY and (sure or len(outliers) > BY_CHANCE)
                what = (
                    f"{counted(len(rows), f'{side} line')} ({share:.2%}) that "
                    f"{'does' if len(rows) == 1 else 'do'} not look like the language of the "
                    f"other {side} lines"
                )
                advice = (
                    "check whether the sides are swapped there, or whether it is a third "
                    "language, and fix or drop them"
                )
                yield Finding("wrong language", "warning" if many else "note", what, advice, rows)

    def _scripts_in(self, text: str) -> int:
        """The scripts of a text, as bits; 0 for a text with too few letters."""
        letters = [character for character in set(text) if character.isalpha()]
        found = {script_of(letter) for letter in letters}
        if len(letters) < LETTERS and "CJK" not in found:
            return 0
        bits = {min(self.scripts.setdefault(script, len(self.scripts)), 63) for script in found}
        return sum(1 << bit for bit in bits)

    def _in_other_scripts(self, side: str) -> Iterator[int]:
        """Lines without any letter of the script that nearly all lines of the side have."""
        written = np.array(self.written[side], dtype=np.uint64)
        known = written > 0
        if known.sum() < ENOUGH:
            return
        for bit in range(len(self.scripts)):
            has = (written & np.uint64(1 << min(bit, 63))) > 0
            if has.sum() >= NEARLY_ALL * known.sum():
                yield from (self.numbers[row] for row in np.flatnonzero(known & ~has).tolist())
                return

    def _learn(self) -> None:
        """Compute the statistics of both sides from the first lines, and judge these lines."""
        source, target = zip(*(pieces for _, pieces in self.first), strict=True)
        self.sides = Side.of(source), Side.of(target)
        for number, pieces in self.first:
            self._judge(number, pieces, known=1)
        self.first = []

    def _judge(self, number: int, pieces: tuple[Pieces, Pieces], *, known: int = 0) -> None:
        """Record a line that the other side makes far likelier than its own.

        Args:
            known: How often the line itself counts in the statistics of its side.
        """
        assert self.sides is not None  # computed before
        for side, some, own, other in zip(
            SIDES, pieces, self.sides, reversed(self.sides), strict=True
        ):
            if likelier(some, own, other, known=known) > SURE:
                self.swapped[side].append(number)


def likelier(some: Pieces, own: Side, other: Side, *, known: int = 0) -> float:
    """How much likelier the other side makes a line, in mean log-probability; 0 if too short.

    Args:
        known: How often the line itself counts in the statistics of its side.
    """
    here, there = own.counts[some] - known, other.counts[some]
    seen = (here + there) > 0
    if np.count_nonzero(seen) < PIECES:
        return 0.0
    return float((other.log_probabilities(there[seen]) - own.log_probabilities(here[seen])).mean())
