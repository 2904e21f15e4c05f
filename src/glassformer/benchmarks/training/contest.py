"""A contest: our side, its peers, and the bars between them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from glassformer.benchmarks.training.race import Side
from glassformer.benchmarks.training.sizes import Sizes


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
