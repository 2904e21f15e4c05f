"""What is measured, and how: every entry yields its contests, and each becomes results.

    one      124M parameters, a single sequence, on a GPU
    many     the same, 64 sequences
    small    4M parameters, one sequence and sixteen, on a CPU
    engine   124M parameters, 256 requests of many lengths, on a GPU

To add one, write a function that yields contests, and list it in ENTRIES.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from glassformer.benchmarks.entries import OURS, Entry, clear
from glassformer.benchmarks.generation.contest import Bench, Contest, Side, TokenRows
from glassformer.benchmarks.generation.engine_contest import ragged
from glassformer.benchmarks.generation.loop_contests import many, one, small
from glassformer.benchmarks.timing import Comparison, compared, no_collection

WARM_UPS = 2  # after the first call, which compiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The result of ours against one peer.

    Attributes:
        speed: Generated tokens per second of both, and their ratio; above 1 ours is faster.
        bar, aim: What the ratio must be, and what it should be; None if it is only stated.
        start, their_start: Seconds of the first call, compilation included.
        remarks: What to know about the contest.
    """

    work: str
    case: str
    theirs: str
    speed: Comparison
    bar: float | None
    aim: float | None
    passed: bool | None
    start: float
    their_start: float
    remarks: list[str]


def measure(name: str, bench: Bench) -> Iterator[Speed]:
    """The results of an entry, one per peer."""
    for contest in ENTRIES[name].contests(bench):
        yield from held(name, contest, bench)
        clear(bench.device)


def held(name: str, contest: Contest, bench: Bench) -> list[Speed]:
    """Hold a contest: the first call of every side, the check, then turns."""
    makes = {OURS: contest.ours} | {against: peer.make for against, peer in contest.peers.items()}
    sides = {side: make() for side, make in makes.items()}
    outputs: dict[str, TokenRows] = {}
    starts = {}
    for side, generate in sides.items():
        starts[side], outputs[side] = timed(generate, bench.device)
    remarks = contest.remarks + contest.check(outputs)
    speeds = turns(sides, contest.tokens, bench)
    found = []
    for against, peer in contest.peers.items():
        speed = compared(speeds[OURS], speeds[against])
        found.append(
            Speed(
                work=name,
                case=contest.case,
                theirs=against,
                speed=speed,
                bar=peer.bar,
                aim=peer.aim,
                passed=None if peer.bar is None else speed.ratio >= peer.bar,
                start=starts[OURS],
                their_start=starts[against],
                remarks=remarks,
            )
        )
    return found


def turns(sides: dict[str, Side], tokens: int, bench: Bench) -> dict[str, list[float]]:
    """Tokens per second of every side in every round; every second round in reverse order."""
    for generate in sides.values():
        for _ in range(WARM_UPS):
            generate()
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    with no_collection():
        for number in range(bench.rounds):
            for name in list(sides)[:: 1 if number % 2 == 0 else -1]:
                speeds[name].append(tokens / timed(sides[name], bench.device)[0])
    return speeds


def timed(generate: Side, device: torch.device) -> tuple[float, TokenRows]:
    """Seconds of one call, and what it generated; the tokens are read, so nothing is pending."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    started = time.perf_counter()
    rows = generate()
    return time.perf_counter() - started, rows


ENTRIES = {
    "one": Entry("cuda", one),
    "many": Entry("cuda", many),
    "small": Entry("cpu", small),
    "engine": Entry("cuda", ragged),
}
