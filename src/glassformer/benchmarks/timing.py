"""Timing two pieces of work against each other, alternating.

A round runs both in immediate succession, and the next round in reverse order, so that other load
on the machine affects both alike. The result is the median of the rounds' ratios: a slow moment
spoils one round, not the result.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

Work = Callable[[], object]

WARM_UPS = 2
SHORTEST = 2e-3  # seconds; shorter work is repeated between two readings of the clock
RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Ours against theirs: seconds of a call, or tokens per second.

    Attributes:
        ours: The median.
        theirs: That of the other.
        ratio: Median of ours / theirs, round by round.
        low, high: The 95 % interval of the ratio.
    """

    ours: float
    theirs: float
    ratio: float
    low: float
    high: float
    rounds: int


def compare(ours: Work, theirs: Work, *, device: torch.device, rounds: int) -> Comparison:
    """Time both alternately, after a warm-up."""
    if rounds < 1:
        raise ValueError(f"a comparison needs at least 1 round, got {rounds}")
    our_calls, their_calls = calls_of(ours, device), calls_of(theirs, device)
    both = []
    with no_collection():
        for number in range(rounds):
            if number % 2 == 0:
                our_time = seconds(ours, device, our_calls)
            their_time = seconds(theirs, device, their_calls)
            if number % 2 == 1:
                our_time = seconds(ours, device, our_calls)
            both.append((our_time, their_time))
    return compared(*zip(*both, strict=True))


def compared(ours: Sequence[float], theirs: Sequence[float]) -> Comparison:
    """The measurements of two sides, round by round, compared."""
    both = torch.tensor([ours, theirs], dtype=torch.float64)  # (2, rounds)
    ratios = both[0] / both[1]
    low, high = interval(ratios)
    medians = both.quantile(0.5, dim=1).tolist()
    return Comparison(
        ours=medians[0],
        theirs=medians[1],
        ratio=float(ratios.quantile(0.5)),
        low=low,
        high=high,
        rounds=len(ratios),
    )


def calls_of(work: Work, device: torch.device) -> int:
    """Warm up, and return how many calls fill the shortest time worth measuring."""
    fastest = min(seconds(work, device) for _ in range(WARM_UPS))
    return max(1, math.ceil(SHORTEST / fastest))


def seconds(work: Work, device: torch.device, calls: int = 1) -> float:
    """Seconds per call, averaged over `calls` calls."""
    if device.type != "cuda":
        start = time.perf_counter()
        for _ in range(calls):
            work()
        return (time.perf_counter() - start) / calls
    with torch.cuda.device(device):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(calls):
            work()
        end.record()
        end.synchronize()
    return begin.elapsed_time(end) / 1000 / calls


def interval(ratios: Float[Tensor, " rounds"]) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median. Efron, 1979."""
    rng = torch.Generator().manual_seed(0)
    drawn = torch.randint(len(ratios), (RESAMPLES, len(ratios)), generator=rng)
    medians = ratios[drawn].quantile(0.5, dim=-1)
    return float(medians.quantile(0.025)), float(medians.quantile(0.975))


@contextmanager
def no_collection() -> Iterator[None]:
    """Disable Python's garbage collector, which would interrupt at random."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
