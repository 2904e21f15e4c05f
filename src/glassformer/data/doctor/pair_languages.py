"""Languages of pairs: lines whose writing is not that of their side.

Three signs are looked for, without knowing any language. A *script*: nearly all lines of a side
have some Cyrillic, and this one has none but other letters. Where both sides share a script, the
*letters that follow each other*: this line looks like the other side far more than like its own.
What each side looks like is learned from its first lines. And a line may be in a third language,
unlike both sides: see `strangers`.
"""

import re
import unicodedata
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.doctor.check import Check, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named
from glassformer.data.doctor.strangers import CELLS, SMOOTH, Strangers

SIDES = ("source", "target")
READ = 200  # characters of a line that are looked at
NEARLY_ALL = 0.95  # of the lines of a side have the script that it is written in
ENOUGH = 50  # lines to know a side by
LETTERS = 4  # fewer different ones do not tell a script: OK, Tom

LEARNED = 2_000  # lines of each side
PIECES = 12  # three letters in a row, met before, that a line must have to be judged
SURE = 1.0  # how much likelier, as a mean logarithm over pieces, the other side must make it
MANY = 0.001  # of the lines: more are no accident
BY_CHANCE = 2  # lines that may seem of a third language and are only odd

SAME = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "IDEOGRAPHIC": "CJK", "BOPOMOFO": "CJK"}
NOT_LETTERS = re.compile(r"[\W\d_]+")

Pieces = Int[np.ndarray, " _"]  # of each line so many


@dataclass(frozen=True, slots=True)
class Side:
    """How often each piece came in the lines that a side is known by, and how many came in all."""

    counts: Int[np.ndarray, " cells"]
    total: int

    @classmethod
    def of(cls, lines: Sequence[Pieces]) -> "Side":
        """What some lines show."""
        counts = np.bincount(np.concatenate(lines), minlength=CELLS)
        return cls(counts, int(counts.sum()))

    def log_chances(self, counts: Pieces) -> Float[np.ndarray, " _"]:
        """How likely it makes pieces that it has met so often."""
        return np.log((counts + SMOOTH) / (self.total + SMOOTH * CELLS))


class PairLanguages(Check):
    """Lines in another language than their side."""

    def __init__(self) -> None:
        self.numbers = array("Q")
        self.scripts: dict[str, int] = {}  # a bit for each script
        self.written: dict[str, array[int]] = {side: array("Q") for side in SIDES}
        self.first: list[tuple[int, tuple[Pieces, Pieces]]] = []  # lines to learn from
        self.sides: tuple[Side, Side] | None = None
        self.turned: dict[str, list[int]] = {side: [] for side in SIDES}
        self.strangers = {side: Strangers() for side in SIDES}

    def see(self, row: Specimen) -> None:
        texts = [row.sample[side][:READ] for side in SIDES]
        self.numbers.append(row.number)
        for side, text in zip(SIDES, texts, strict=True):
            self.written[side].append(self._scripts_in(text))
        pieces = (pieces_of(texts[0]), pieces_of(texts[1]))
        for side, text, some in zip(SIDES, texts, pieces, strict=True):
            self.strangers[side].see(row.number, text, some)
        if self.sides is not None:
            self._judge(row.number, pieces)
        else:
            self.first.append((row.number, pieces))
            if len(self.first) == LEARNED:
                self._learn()

    def findings(self, where: Where) -> Iterator[Finding]:
        if self.sides is None and len(self.first) >= ENOUGH:
            self._learn()
        for side in SIDES:
            sure = {*self._in_other_scripts(side), *self.turned[side]}
            strangers = {*self.strangers[side].found()} - sure
            rows = sorted(sure | strangers)
            if rows:
                share = len(rows) / len(self.numbers)
                many = share >= MANY and (sure or len(strangers) > BY_CHANCE)
                yield Finding(
                    kind="wrong language",
                    severity="warning" if many else "note",
                    what=f"{counted(len(rows), f'{side} line')} ({share:.2%}) that "
                    f"{'does' if len(rows) == 1 else 'do'} not look like the language of the "
                    f"other {side} lines",
                    advice="look whether the sides are exchanged there, or whether it is a third "
                    "language, and mend or drop them",
                    count=len(rows),
                    rows=named(rows, where),
                )

    def _scripts_in(self, text: str) -> int:
        """The scripts of a text, as bits; none for a text of too few letters."""
        letters = [character for character in set(text) if character.isalpha()]
        found = {script_of(letter) for letter in letters}
        if len(letters) < LETTERS and "CJK" not in found:
            return 0
        bits = {min(self.scripts.setdefault(script, len(self.scripts)), 63) for script in found}
        return sum(1 << bit for bit in bits)

    def _in_other_scripts(self, side: str) -> Iterator[int]:
        """Lines without a letter of the script that nearly all lines of the side have."""
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
        """Take both sides as the first lines show them, and judge these lines."""
        source, target = zip(*(pieces for _, pieces in self.first), strict=True)
        self.sides = Side.of(source), Side.of(target)
        for number, pieces in self.first:
            self._judge(number, pieces, known=1)
        self.first = []

    def _judge(self, number: int, pieces: tuple[Pieces, Pieces], *, known: int = 0) -> None:
        """Note a line that the other side makes far likelier than its own.

        Args:
            known: How often the line was counted when its own side was learned.
        """
        assert self.sides is not None  # learned before
        for side, some, own, other in zip(
            SIDES, pieces, self.sides, reversed(self.sides), strict=True
        ):
            here, there = own.counts[some] - known, other.counts[some]
            met = (here + there) > 0
            if np.count_nonzero(met) >= PIECES:
                likelier = other.log_chances(there[met]) - own.log_chances(here[met])
                if likelier.mean() > SURE:
                    self.turned[side].append(number)


def pieces_of(text: str) -> Pieces:
    """Three letters in a row, with the ends of words, as numbers below CELLS."""
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
