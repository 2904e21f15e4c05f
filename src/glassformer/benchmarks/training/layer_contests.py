"""Contests of single encoder layers in training, forward and backward."""

from collections.abc import Iterator
from functools import partial

import torch

from glassformer.benchmarks import layers
from glassformer.benchmarks.timing import Work, seconds
from glassformer.benchmarks.training.race import Bench, Contest, Peer

NAME = "nn.TransformerEncoderLayer"
CALLS = 5  # between two readings of the clock


class Repeated:
    """A piece of work on so many tokens, again and again."""

    def __init__(self, work: Work, tokens: int, device: torch.device) -> None:
        self.work, self.tokens, self.device = work, tokens, device
        self.remarks: list[str] = []

    def advance(self) -> int:
        """A few calls."""
        seconds(self.work, self.device, CALLS)  # waits for the device
        return CALLS * self.tokens

    def close(self) -> None:
        """Nothing runs between two turns."""


def encoder_layers(bench: Bench) -> Iterator[Contest]:
    """Our encoder layer against torch.nn's, in both orders."""
    length, tokens = bench.sizes.layers, layers.BATCH * bench.sizes.layers
    for order in layers.ORDERS:
        for size in bench.sizes.layer_sizes:
            pair = layers.layer_pair(order, size, length, 0.1, bench.device, "torch.nn")
            ours, theirs = pair.make()
            yield Contest(
                case=f"{pair.case}, length {length}",
                ours=partial(Repeated, ours, tokens, bench.device),
                peers={NAME: Peer(partial(Repeated, theirs, tokens, bench.device), 1.1, 1.3)},
            )
