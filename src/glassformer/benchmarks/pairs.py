"""Pairs: what is measured against what, and how one pair is measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from glassformer.benchmarks.memory import peak_memory
from glassformer.benchmarks.timing import Comparison, Work, compare

FORWARD, TRAINING = "forward", "training"  # training is forward and backward, without the update


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two ways to do the same work.

    Attributes:
        case: What the work is.
        length: Of the sequences in it.
        make: Builds both pieces of work; tensors and weights are allocated only then.
    """

    case: str
    length: int
    ours: str
    theirs: str
    make: Callable[[], tuple[Work, Work]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The measurements of a pair. Memory is in bytes, None if it cannot be measured."""

    case: str
    length: int
    ours: str
    theirs: str
    time: Comparison
    memory: int | None
    their_memory: int | None


def measure(pair: Pair, *, device: torch.device, rounds: int) -> Result:
    """Alternating times, then the peak memory of one call each."""
    ours, theirs = pair.make()
    time = compare(ours, theirs, device=device, rounds=rounds)
    return Result(
        case=pair.case,
        length=pair.length,
        ours=pair.ours,
        theirs=pair.theirs,
        time=time,
        memory=peak_memory(ours, device),
        their_memory=peak_memory(theirs, device),
    )


def forward(run: Callable[[], Tensor]) -> Work:
    """The forward pass only, as in inference."""

    def work() -> Tensor:
        with torch.no_grad():
            return run()

    return work


def training(run: Callable[[], Tensor], inputs: Sequence[Tensor]) -> Work:
    """The forward pass and the gradients of the inputs, without accumulation."""
    with torch.no_grad():
        direction = torch.randn_like(run())

    def work() -> object:
        return torch.autograd.grad(run(), inputs, direction, allow_unused=True)

    return work


def module_work(module: nn.Module, run: Callable[[], Tensor], x: Tensor, case: str) -> Work:
    """One call of a module, with gradients of its input and weights in training."""
    if case == FORWARD:
        module.eval()
        return forward(run)
    module.train()
    return training(run, [x, *module.parameters()])


def batch_of(device: torch.device) -> int:
    """Rows that keep the device busy and fit it even with materialised weights."""
    return 8 if device.type == "cuda" else 1


def dtype_of(device: torch.device) -> torch.dtype:
    """The usual precision: half precision is slower on most CPUs."""
    return torch.bfloat16 if device.type == "cuda" else torch.float32
