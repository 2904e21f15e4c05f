"""Lengths of pairs: the ratio of target to source length varies little between translations.

The logarithm of target length over source length is compared, with a few characters added to both
so that short texts may differ. The usual ratio and the deviation from it are medians, so that wrong
pairs do not affect them.
"""

import itertools
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.doctor.check import Check, Finding, Specimen
from glassformer.wording import counted

ADDED = 10  # characters added to every length
ENOUGH = 20  # pairs needed to know the usual ratio
FAR, LEAST = 6.0, math.log(2)  # odd: this many deviations away, and at least twice as long
SMALLEST_DEVIATION = 0.1
MANY = 0.001  # of the pairs: more odd ones are not an accident

BLOCK = 25  # pairs that are shifted together
MOVES = (-3, -2, -1, 1, 2, 3)
NEAR = 4 * BLOCK  # stretches this close are merged
BETTER = 0.6  # a shift explains a block if it leaves at most this share of its deviation
SURE = 4.5  # standard errors by which the gain of a stretch is above zero


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pairs from `begin` up to `end` whose targets are `move` rows away from their sources."""

    begin: int
    end: int
    move: int


class PairLengths(Check):
    """Pairs of unusual length ratio, and stretches where each target belongs to another source.

    Such a stretch is found by trial: if targets fit the sources much better by length when shifted
    by a few rows, they are misaligned.
    """

    needs_all = True

    def __init__(self) -> None:
        self.sources, self.targets, self.numbers = array("L"), array("L"), array("Q")

    def see(self, row: Specimen) -> None:
        self.sources.append(len(row.sample["source"]))
        self.targets.append(len(row.sample["target"]))
        self.numbers.append(row.number)

    def findings(self) -> Iterator[Finding]:
        if len(self.numbers) < ENOUGH:
            return
        moved = self._moved()
        if moved:
            yield self._misaligned(moved)
        odd = self._odd(moved)
        if len(odd):
            share = len(odd) / len(self.numbers)
            what = (
                f"{counted(len(odd), 'pair')} ({share:.2%}) with one side much longer than "
                f"usual for the other"
            )
            advice = "check whether they are translations of each other, and fix or drop them"
            severity = "warning" if share >= MANY else "note"
            yield Finding("odd lengths", severity, what, advice, [self.numbers[n] for n in odd])

    def _deviations(self, move: int = 0) -> Float[np.ndarray, " rows"]:
        """How far each pair is from the usual ratio, with the targets shifted up by some rows."""
        source = np.log(np.array(self.sources) + ADDED)
        target = np.log(np.array(self.targets) + ADDED)
        usual = np.median(target - source)
        return np.abs(np.roll(target, -move) - source - usual)

    def _limit(self) -> float:
        """The deviation above which a pair is odd."""
        deviation = max(1.4826 * float(np.median(self._deviations())), SMALLEST_DEVIATION)
        return max(FAR * deviation, LEAST)

    def _odd(self, moved: list[Stretch]) -> Int[np.ndarray, " odd"]:
        """Pairs with odd lengths, except those that are misaligned."""
        odd = self._deviations() > self._limit()
        for stretch in moved:
            odd[stretch.begin : stretch.end] = False
        return np.flatnonzero(odd)

    def _misaligned(self, moved: list[Stretch]) -> Finding:
        pairs = sum(stretch.end - stretch.begin for stretch in moved)
        first = moved[0]
        rows = counted(abs(first.move), "row")
        what = (
            f"{counted(pairs, 'pair')} in {_stretches(len(moved))} that fit much "
            f"better by length if each target is taken from {rows} "
            f"{'below' if first.move > 0 else 'above'}"
        )
        advice = "a line was lost or added where it begins; align the two sides again"
        starts = [self.numbers[stretch.begin] for stretch in moved]
        return Finding("misaligned pairs", "error", what, advice, starts, total=pairs)

    def _moved(self) -> list[Stretch]:
        """The stretches of pairs that a shift explains."""
        blocks, limit = len(self.numbers) // BLOCK, self._limit()
        deviations = np.minimum(
            self._deviations(), limit
        )  # one odd pair does not decide for a block
        gains = {move: deviations - np.minimum(self._deviations(move), limit) for move in MOVES}
        now = _block_means(deviations, blocks)
        best = np.stack([_block_means(gains[move], blocks) for move in MOVES])
        move = np.where(best.max(axis=0) > (1 - BETTER) * now, best.argmax(axis=0), -1)
        edges = np.flatnonzero(np.diff(move, prepend=-2, append=-2)).tolist()
        found: list[Stretch] = []
        for first, last in itertools.pairwise(edges):
            if move[first] < 0:
                continue
            gain = gains[MOVES[move[first]]]
            begin, end = _lowest(gain, first * BLOCK), _lowest(-gain, last * BLOCK)
            if found and found[-1].move == MOVES[move[first]] and begin - found[-1].end < NEAR:
                begin = found.pop().begin
            found.append(Stretch(begin, end, MOVES[move[first]]))
        return [
            stretch
            for stretch in found
            if _is_sure(gains[stretch.move][stretch.begin : stretch.end])
        ]


def _stretches(count: int) -> str:
    return "one stretch" if count == 1 else f"{count:,} stretches"


def _block_means(values: Float[np.ndarray, " rows"], blocks: int) -> Float[np.ndarray, " blocks"]:
    return values[: blocks * BLOCK].reshape(blocks, BLOCK).mean(axis=1)


def _is_sure(gain: Float[np.ndarray, " pairs"]) -> bool:
    """Whether a stretch gains more than chance, or a few odd pairs at its edges, would explain.

    The sum over the root of the summed squares is 1 if one pair has all the gain, and grows with
    the square root of the number of pairs that share it.
    """
    return len(gain) >= BLOCK and bool(gain.sum() > SURE * np.sqrt(np.square(gain).sum()))


def _lowest(gain: Float[np.ndarray, " rows"], near: int) -> int:
    """The row, at most a block away, before which gains have the lowest sum: they start there."""
    start = max(0, near - BLOCK)
    sums = np.concatenate([[0.0], np.cumsum(gain[start : near + BLOCK])])
    return start + int(sums.argmin())
