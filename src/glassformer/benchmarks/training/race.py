"""A race: sides that train in turns, so that other load on the machine affects all alike.

A turn is a few seconds of training. Its first steps are not counted: a loader may have prepared
their batches while others had their turn. Every second round runs in reverse order.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

import torch

from glassformer.benchmarks.training.sizes import Sizes
from glassformer.training import memory

Name = TypeVar("Name")


@runtime_checkable
class Side(Protocol):
    """A training that can be continued.

    Attributes:
        remarks: Notes and warnings of the training, such as that its steps are compiled.
    """

    remarks: list[str]

    def advance(self) -> int:
        """Train a few steps, wait for the device, and return how many real tokens they had."""

    def close(self) -> None:
        """Stop it."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """A side after its warm-up.

    Attributes:
        start: Seconds of its first steps, compilation included.
        memory: Peak bytes since it was built, compilation included; None if unknown.
    """

    side: Side
    start: float
    memory: int | None


def enter(make: Callable[[], Side], device: torch.device, warm_ups: int) -> Entrant:
    """Build a side and warm it up: its first steps, and so many times as many."""
    memory.reset_peak(device)
    before, started = memory.in_use(device), time.perf_counter()
    side = make()
    side.advance()
    start = time.perf_counter() - started
    for _ in range(warm_ups):
        side.advance()
    peak = memory.peak(device)
    known = None if peak is None or before is None else max(0, peak - before)
    return Entrant(side, start, known)


def turn(side: Side, seconds: float) -> float:
    """Tokens per second over at least so many seconds."""
    side.advance()
    started, tokens, spent = time.perf_counter(), 0, 0.0
    while spent < seconds:
        tokens += side.advance()
        spent = time.perf_counter() - started
    return tokens / spent


def race(sides: Mapping[str, Side], rounds: int, seconds: float) -> dict[str, list[float]]:
    """The speed of every side in every round."""
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for number in range(rounds):
        for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
            speeds[name].append(turn(sides[name], seconds))
    return speeds


def fastest(makes: Mapping[Name, Callable[[], Side]], seconds: float, warm_ups: int) -> Name:
    """The name of the side that trains fastest in a trial."""
    speeds = {}
    for name, make in makes.items():
        side = make()
        for _ in range(warm_ups):
            side.advance()
        speeds[name] = turn(side, seconds)
        side.close()
    return max(speeds, key=speeds.__getitem__)


@dataclass(frozen=True, slots=True)
class Bench:
    """Where contests take place.

    Attributes:
        folder: For corpora and runs.
        peers: The folder of other people's models, if there is one.
        rounds: Turns of every side.
        seconds: Length of a turn.
        warm_ups: Times ten steps before the first turn.
    """

    device: torch.device
    sizes: Sizes
    folder: Path
    peers: Path | None
    rounds: int
    seconds: float
    warm_ups: int


@dataclass(frozen=True, slots=True)
class Peer:
    """A peer, how much faster ours must be, and how much faster it should be."""

    make: Callable[[], Side]
    bar: float
    aim: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """One piece of work, on all sides.

    Attributes:
        flops: Operations of training per token that counts; None if unknown.
    """

    case: str
    ours: Callable[[], Side]
    peers: Mapping[str, Peer]
    flops: float | None = None
