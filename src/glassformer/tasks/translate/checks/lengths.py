"""Lengths of pairs: a translation is about as much longer or shorter as translations usually are.

What is compared is the logarithm of target length over source length, a few characters added to
both so that short texts may differ. What is usual, and how far pairs stray from it, are medians, so
that the pairs that are wrong do not decide what is right.
"""

import itertools
import math
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.doctor.check import Check, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named

ADDED = 10  # characters
ENOUGH = 20  # pairs to know what is usual
FAR, LEAST = 6.0, math.log(2)  # odd: so many usual deviations away, and twice as long at least
SMALLEST_DEVIATION = 0.1
MANY = 0.001  # of the pairs: more odd ones are no accident

BLOCK = 25  # pairs that are moved against each other together
MOVES = (-3, -2, -1, 1, 2, 3)
NEAR = 4 * BLOCK  # stretches that are one, seen through noise
BETTER = 0.6  # a move explains a block when it leaves no more than this of its strangeness
SURE = 4.5  # standard errors that the gain of a stretch is above none


@dataclass(frozen=True, slots=True)
class Stretch:
    """Pairs from `begin` up to `end` whose targets stand so many rows from where they belong."""

    begin: int
    end: int
    move: int


class PairLengths(Check):
    """Pairs of odd length, and stretches where each target stands beside its neighbour's source.

    Such a stretch is found by trying: where targets, moved by a few rows, fit the sources much
    better by length than they do where they are, they were moved.
    """

    needs_all = True

    def __init__(self) -> None:
        self.sources, self.targets, self.numbers = array("L"), array("L"), array("Q")

    def see(self, row: Specimen) -> None:
        self.sources.append(len(row.sample["source"]))
        self.targets.append(len(row.sample["target"]))
        self.numbers.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        if len(self.numbers) < ENOUGH:
            return
        moved = self._moved()
        if moved:
            yield self._misaligned(moved, where)
        odd = self._odd(moved)
        if len(odd):
            share = len(odd) / len(self.numbers)
            yield Finding(
                kind="odd lengths",
                severity="warning" if share >= MANY else "note",
                what=f"{counted(len(odd), 'pair')} ({share:.2%}) with one side much longer than "
                f"usual for the other",
                advice="check whether they are translations of each other, and fix or drop them",
                count=len(odd),
                rows=named((self.numbers[row] for row in odd), where),
            )

    def _strangeness(self, move: int = 0) -> Float[np.ndarray, " rows"]:
        """How far each pair is from what is usual, if the targets were moved up by some rows."""
        source = np.log(np.array(self.sources) + ADDED)
        target = np.log(np.array(self.targets) + ADDED)
        usual = np.median(target - source)
        return np.abs(np.roll(target, -move) - source - usual)

    def _limit(self) -> float:
        """How strange a pair may be before it is odd."""
        deviation = max(1.4826 * float(np.median(self._strangeness())), SMALLEST_DEVIATION)
        return max(FAR * deviation, LEAST)

    def _odd(self, moved: list[Stretch]) -> Int[np.ndarray, " odd"]:
        """Pairs whose lengths are odd, but for those that are misaligned."""
        odd = self._strangeness() > self._limit()
        for stretch in moved:
            odd[stretch.begin : stretch.end] = False
        return np.flatnonzero(odd)

    def _misaligned(self, moved: list[Stretch], where: Where) -> Finding:
        pairs = sum(stretch.end - stretch.begin for stretch in moved)
        first = moved[0]
        rows = counted(abs(first.move), "row")
        return Finding(
            kind="misaligned pairs",
            severity="error",
            what=f"{counted(pairs, 'pair')} in {_stretches(len(moved))} that fit much "
            f"better by length when each target is taken from {rows} "
            f"{'below' if first.move > 0 else 'above'}",
            advice="a line was lost or added where it begins; align the two sides again",
            count=pairs,
            rows=named((self.numbers[stretch.begin] for stretch in moved), where),
        )

    def _moved(self) -> list[Stretch]:
        """The stretches of pairs that a move explains."""
        blocks, limit = len(self.numbers) // BLOCK, self._limit()
        strange = np.minimum(self._strangeness(), limit)  # one odd pair does not speak for a block
        gains = {move: strange - np.minimum(self._strangeness(move), limit) for move in MOVES}
        now = _block_means(strange, blocks)
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
    """Whether a stretch gains by more than chance, or a few odd pairs at its edges, would give.

    The sum over the root of the summed squares is 1 where one pair has all the gain, and grows with
    the root of the pairs that share it.
    """
    return len(gain) >= BLOCK and bool(gain.sum() > SURE * np.sqrt(np.square(gain).sum()))


def _lowest(gain: Float[np.ndarray, " rows"], near: int) -> int:
    """The place, at most a block away, before which gains sum to least: they begin there."""
    start = max(0, near - BLOCK)
    sums = np.concatenate([[0.0], np.cumsum(gain[start : near + BLOCK])])
    return start + int(sums.argmin())
