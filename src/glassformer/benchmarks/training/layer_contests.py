"""Contests of single encoder layers in training, forward and backward."""

from collections.abc import Iterator

from glassformer.benchmarks import layers
from glassformer.benchmarks.timing import Work, seconds
from glassformer.benchmarks.training.contest import Bench, Contest, Peer

CALLS = 5


class Repeated:
    """A piece of work on so many tokens, again and again."""

    def __init__(self, work: Work, tokens: int, bench: Bench) -> None:
        self.work, self.tokens, self.device = work, tokens, bench.device

    def advance(self) -> int:
        """A few calls."""
        seconds(self.work, self.device, CALLS)  # waits for the device
        return CALLS * self.tokens

    def close(self) -> None:
        """Nothing runs between two turns."""


def encoder_layers(bench: Bench) -> Iterator[Contest]:
    """Our encoder layer against torch.nn's, in both orders."""
    length = bench.sizes.layers
    for order in layers.ORDERS:
        for size in bench.sizes.layer_sizes:
            pair = layers.layer_pair(order, size, length, 0.1, bench.device, "torch.nn")
            ours, theirs = (Repeated(work, layers.BATCH * length, bench) for work in pair.make())
            yield Contest(
                case=f"{pair.case}, length {length}",
                ours=lambda side=ours: side,
                peers={
                    "nn.TransformerEncoderLayer": Peer(lambda side=theirs: side, bar=1.1, aim=1.3)
                },
            )
