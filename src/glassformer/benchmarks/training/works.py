"""What is measured, and how: every entry yields its contests, and each becomes results.

    pairs           encoder-decoder base on pairs of sentences, batches of 16k tokens
    pairs-default   the same at our default batch size, the peer at its best
    language-model  124M parameters, rows of 1,024 tokens
    reviews         classification of texts as long as those of IMDb
    gaps            its pretraining
    languages       the recipe of this name
    dates           the recipe of this name
    layers          single encoder layers

To add one, write a function that yields contests, and list it in ENTRIES.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch

from glassformer.benchmarks.entries import OURS, Entry, clear
from glassformer.benchmarks.timing import Comparison, compared
from glassformer.benchmarks.training.layer_contests import encoder_layers
from glassformer.benchmarks.training.nanogpt import language_models
from glassformer.benchmarks.training.pair_contests import chosen_pairs, dates, fixed_pairs
from glassformer.benchmarks.training.race import Bench, Contest, Entrant, enter, race
from glassformer.benchmarks.training.text_contests import gaps, languages, reviews

PEAKS = {"H100": 989e12, "H200": 989e12, "A100": 312e12}  # bf16 operations per second, dense


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """The result of ours against one peer.

    Attributes:
        speed: Real tokens per second of both, and their ratio; above 1 ours is faster.
        bar, aim: What the ratio must be, and what it should be.
        start, their_start: Seconds of the first ten steps, compilation included.
        memory, their_memory: Peak bytes; None if unknown.
        peak_share, their_peak_share: Operations that the model needs, as a share of what the
            device could do; None if unknown.
        remarks: Notes and warnings of our training loop.
    """

    work: str
    case: str
    theirs: str
    speed: Comparison
    bar: float
    aim: float
    passed: bool
    start: float
    their_start: float
    memory: int | None
    their_memory: int | None
    peak_share: float | None
    their_peak_share: float | None
    remarks: list[str]


def measure(name: str, bench: Bench) -> Iterator[Speed]:
    """The results of an entry, one per peer."""
    for contest in ENTRIES[name].contests(bench):
        yield from held(name, contest, bench)
        clear(bench.device)


def held(name: str, contest: Contest, bench: Bench) -> list[Speed]:
    """Hold a contest."""
    makes = {OURS: contest.ours} | {peer: one.make for peer, one in contest.peers.items()}
    entrants: dict[str, Entrant] = {}
    try:
        for side, make in makes.items():
            entrants[side] = enter(make, bench.device, bench.warm_ups)
        sides = {side: entrant.side for side, entrant in entrants.items()}
        speeds = race(sides, bench.rounds, bench.seconds)
    finally:
        for entrant in entrants.values():
            entrant.side.close()
    peak, ours = peak_of(bench.device), entrants[OURS]
    found = []
    for peer, one in contest.peers.items():
        speed, theirs = compared(speeds[OURS], speeds[peer]), entrants[peer]
        found.append(
            Speed(
                work=name,
                case=contest.case,
                theirs=peer,
                speed=speed,
                bar=one.bar,
                aim=one.aim,
                passed=speed.ratio >= one.bar,
                start=ours.start,
                their_start=theirs.start,
                memory=ours.memory,
                their_memory=theirs.memory,
                peak_share=share(speed.ours, contest.flops, peak),
                their_peak_share=share(speed.theirs, contest.flops, peak),
                remarks=ours.side.remarks,
            )
        )
    return found


def share(tokens: float, flops: float | None, peak: float | None) -> float | None:
    """Tokens per second as a share of the peak."""
    return None if flops is None or peak is None else tokens * flops / peak


def peak_of(device: torch.device) -> float | None:
    """Operations per second in bf16, if the device is known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for part, peak in PEAKS.items() if part in name), None)


ENTRIES = {
    "pairs": Entry("cuda", fixed_pairs),
    "pairs-default": Entry("cuda", chosen_pairs),
    "language-model": Entry("cuda", language_models),
    "reviews": Entry("cuda", reviews),
    "gaps": Entry("cuda", gaps),
    "languages": Entry("cpu", languages),
    "dates": Entry("cpu", dates),
    "layers": Entry("cpu", encoder_layers),
}
