"""Faithfulness: whether the pieces that a method names first are those the model relies on.

    deletion    the probability of the prediction without the first pieces    lower is better
    insertion   the same with the first pieces only                           higher is better

Petsiuk et al., 2018. Both curves are compared with those of random orders on the same inputs: the
gain is by how much more the first pieces change the probability than random ones do, on average,
with an interval over inputs.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.explaining.focus import focused
from glassformer.explaining.methods import METHODS, usable_methods
from glassformer.explaining.subject import Subject
from glassformer.metrics.intervals import jackknife, ratio
from glassformer.metrics.units import Units
from glassformer.wording import counted

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4)  # of the pieces, left out or kept
RANDOM = 4  # orders
CHANCE = "a random order"
LEAST_ROWS = 8
INPUTS = Units("input")
NOT_MEASURED = "faithfulness not measured"
NGRAMS_ALONE = (
    "N-grams alone make the predictions: methods that look inside the network are left out"
)
# The first that takes a moment.
USUAL = ("occlusion", "attention_x_gradient", "gradient_x_input", "ngrams")

Curves = Float[np.ndarray, "2 points"]  # deletion, insertion


@dataclass(frozen=True, kw_only=True, slots=True)
class MethodFaithfulness:
    """How faithful a method is.

    Attributes:
        gain, low, high: By how much more its first pieces change the probability than random ones
            do, and the 95 % interval of that, if there are enough inputs for one.
        deletion, insertion: Mean probabilities at each of SHARES.
        seconds: What it takes on average to explain one input.
    """

    gain: float
    low: float | None = None
    high: float | None = None
    deletion: tuple[float, ...]
    insertion: tuple[float, ...]
    seconds: float = 0.0

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.gain:.2f}"
        return f"{self.gain:.2f} [{self.low:.2f}, {self.high:.2f}]"

    @property
    def least(self) -> float:
        """The least gain that it may have."""
        return self.gain if self.low is None else self.low


@dataclass(frozen=True, kw_only=True, slots=True)
class Faithfulness:
    """How faithful every method is on the inputs of a run.

    Attributes:
        rows: How many inputs it was measured on.
        methods: By name, and CHANCE.
        notes: Sentences on what was not measured.
    """

    rows: int
    methods: dict[str, MethodFaithfulness]
    notes: tuple[str, ...] = ()

    def verdict(self, name: str) -> str:
        """How far a method can be trusted, in one sentence."""
        if name not in self.methods:
            return NOT_MEASURED
        if self.too_few:
            return f"faithfulness not known: {self.too_few}"
        found, best = self.methods[name], self.ranked()[0]
        if found.least > 0:
            words = f"better than chance by {found}"
        else:
            worse = found.high is not None and found.high < 0
            words = f"{'worse' if worse else 'no better'} than chance ({found})"
        words = f"{words}, measured on {counted(self.rows, 'row')}"
        if self.methods[best].least > found.gain:
            words = f"{words}; {best} is more faithful, {self.methods[best]}"
        return words

    @property
    def too_few(self) -> str:
        """Why methods cannot be judged; empty if they can."""
        return INPUTS.objection("gain", self.rows, "a verdict")

    def ranked(self) -> list[str]:
        """The methods, the most faithful first."""
        names = [name for name in self.methods if name != CHANCE]
        return sorted(names, key=lambda name: -self.methods[name].gain)

    def choose(self, subject: Subject) -> str:
        """The most faithful method of those that take a moment, if it is better than chance."""
        usable = usable_methods(subject)
        ranked = [name for name in self.ranked() if name in usable]
        quick = [name for name in ranked if METHODS[name].is_affordable(subject)]
        return quick[0] if quick and self.methods[quick[0]].least > 0 else ranked[0]


def choose_unmeasured(subject: Subject) -> str:
    """A method that is often faithful."""
    usable = usable_methods(subject)
    return next(n for n in USUAL if n in usable and METHODS[n].is_affordable(subject))


def measure(
    subjects: Iterable[Subject], *, rows: int, seconds: float = math.inf
) -> Iterator[tuple[int, "Faithfulness | None"]]:
    """How many inputs are done, one after the other, and at last what was found.

    Args:
        rows: How many inputs to use.
        seconds: No more are begun after this time, but for the first LEAST_ROWS.
    """
    rng, started = np.random.default_rng(0), time.monotonic()
    curves: list[dict[str, Curves]] = []
    notes: tuple[str, ...] = ()
    spent: dict[str, float] = dict.fromkeys(METHODS, 0.0)
    for subject in subjects:
        if len(subject.pieces) < 2:
            continue
        curves.append(curves_of(focused(subject), rng, spent))
        notes = (NGRAMS_ALONE,) if subject.by_ngrams_alone else ()
        yield len(curves), None
        late = time.monotonic() - started > seconds and len(curves) >= LEAST_ROWS
        if late or len(curves) == rows:
            break
    if curves:
        yield len(curves), replace(summarised(curves, spent), notes=notes)


def curves_of(
    subject: Subject, rng: np.random.Generator, spent: dict[str, float]
) -> dict[str, Curves]:
    """The curves of every method, and the mean of random orders."""
    orders: dict[str, list[np.ndarray]] = {}
    for name in usable_methods(subject):
        began = time.perf_counter()
        influence = METHODS[name].influence(subject)[0].cpu().numpy()
        spent[name] += time.perf_counter() - began
        orders[name] = [np.argsort(-influence, kind="stable")]
    orders[CHANCE] = [rng.permutation(len(subject.pieces)) for _ in range(RANDOM)]
    every = [order for some in orders.values() for order in some]
    kept = np.concatenate([kept_pieces(order) for order in every])
    scores = subject.scores_of(torch.from_numpy(kept))[:, 0]
    drawn = probabilities(scores).reshape(len(every), 2, len(SHARES))
    ends = np.cumsum([len(some) for some in orders.values()])[:-1]
    parts = np.split(drawn, ends)
    return {name: part.mean(axis=0) for name, part in zip(orders, parts, strict=True)}


def kept_pieces(order: np.ndarray) -> Bool[np.ndarray, "variants pieces"]:
    """What is left without the first pieces of an order, and then these alone, for all SHARES."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    counts = np.ceil(np.array(SHARES) * len(order))[:, None]
    return np.concatenate([rank >= counts, rank < counts])


def probabilities(scores: Float[Tensor, " variants"]) -> Float[np.ndarray, " variants"]:
    """From log-odds to probabilities."""
    return scores.double().sigmoid().cpu().numpy()


def summarised(rows: list[dict[str, Curves]], spent: Mapping[str, float]) -> Faithfulness:
    """Mean curves, and the gain over random orders of the same inputs."""
    found = {}
    names = [name for name in rows[0] if all(name in row for row in rows)]
    for name in names:
        curves = np.stack([row[name] for row in rows])  # (rows, 2, points)
        chance = np.stack([row[CHANCE] for row in rows])
        gains = apart(curves) - apart(chance)
        score = INPUTS.judged(
            "gain", jackknife(ratio, gains, np.ones(len(gains))).score(), len(gains)
        )
        deletion, insertion = (tuple(curve) for curve in curves.mean(axis=0).tolist())
        found[name] = MethodFaithfulness(
            gain=score.value,
            low=None if score.interval is None else score.low,
            high=None if score.interval is None else score.high,
            deletion=deletion,
            insertion=insertion,
            seconds=spent.get(name, 0.0) / len(rows),
        )
    return Faithfulness(rows=len(rows), methods=found)


def apart(curves: Float[np.ndarray, "rows 2 points"]) -> Float[np.ndarray, " rows"]:
    """Half the distance from the curve of deletion up to that of insertion."""
    deletion, insertion = curves.mean(axis=2).T
    return (insertion - deletion) / 2
