"""The cost of a layer against the length of the sequence, measured.

The table of Vaswani et al. (2017), with n the length, d the width, r the window or the summary, k
the width of a convolution, h the heads:

                 operations    steps in a row   longest path
    softmax      n² d          1                1
    linear       n d² / h      1                1              Katharopoulos et al., 2020
    linformer    r n d         1                1              Wang et al., 2020
    window       r n d         1                n / r
    gru          n d²          n                n
    convolution  k n d²        1                n / k

Projections add n d² to every kind of attention, so the cost of short sequences is linear in n.
To add a kind, list it in LAYERS.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from glassformer.benchmarks.pairs import TRAINING, Pair, Result, batch_of, dtype_of, module_work
from glassformer.benchmarks.timing import Work
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.kinds import KINDS
from glassformer.core.masks import window

DIM, HEADS = 256, 4
SUMMARY = 64
WINDOW = 64
WIDTH = 3  # of the convolution

FITTED = 3  # longest lengths, where the highest power dominates

WINDOW_ON_CPU = (
    "window: on a CPU the mask is materialised, so time and memory still grow with n²; "
    "on CUDA, from length 8192 on, masked blocks are skipped"
)


@dataclass(frozen=True, slots=True)
class Layer:
    """The published complexity of a kind of layer, how to build one for a length, and to run it."""

    operations: str
    steps: str
    path: str
    make: Callable[[int], nn.Module]
    run: Callable[[nn.Module, Tensor], Tensor] = nn.Module.__call__


def costs(lengths: Sequence[int], device: torch.device) -> tuple[list[Pair], list[str]]:
    """Every kind against softmax at every length; softmax against itself shows the noise."""
    pairs = [cost_pair(name, length, device) for length in lengths for name in LAYERS]
    return pairs, [WINDOW_ON_CPU] if device.type == "cpu" else []


def cost_pair(name: str, length: int, device: torch.device) -> Pair:
    """One kind of layer against softmax, on the same vectors."""

    def make() -> tuple[Work, Work]:
        shape, dtype = (batch_of(device), length, DIM), dtype_of(device)
        x = torch.randn(shape, device=device, dtype=dtype, requires_grad=True)
        return layer_work(name, x), layer_work("softmax", x)

    return Pair(case=TRAINING, length=length, ours=name, theirs="softmax", make=make)


def layer_work(name: str, x: Tensor) -> Work:
    """Forward and backward of a layer made for the length of these vectors."""
    layer = LAYERS[name]
    module = layer.make(x.shape[1]).to(x.device, x.dtype)
    return module_work(module, lambda: layer.run(module, x), x, TRAINING)


def growth(lengths: Sequence[int], amounts: Sequence[int | float | None]) -> float | None:
    """The best-fitting exponent p of amount = c · lengthᵖ; None with too few points.

    >>> growth([128, 256, 512], [3.0, 12.0, 48.0])
    2.0
    """
    points = [
        (math.log(n), math.log(amount))
        for n, amount in zip(lengths, amounts, strict=True)
        if amount
    ]
    if len(points) < 2:
        return None
    x, y = torch.tensor(points, dtype=torch.float64).T
    x, y = x - x.mean(), y - y.mean()
    return round(float((x * y).sum() / (x * x).sum()), 3)


def exponents(results: Sequence[Result]) -> dict[str, dict[str, float | None]]:
    """By kind of layer, how time and memory grow over the longest lengths measured."""
    grown = {}
    for name in dict.fromkeys(result.ours for result in results):
        longest = [result for result in results if result.ours == name][-FITTED:]
        lengths = [result.length for result in longest]
        grown[name] = {
            "time": growth(lengths, [result.time.ours for result in longest]),
            "memory": growth(lengths, [result.memory for result in longest]),
        }
    return grown


def linformer(length: int) -> nn.Module:
    """Its projection has a fixed length."""
    return KINDS["linformer"](DIM, HEADS, summary=SUMMARY, max_length=length)


def convolution(length: int) -> nn.Module:
    """Each position and its neighbours."""
    return nn.Conv1d(DIM, DIM, WIDTH, padding=WIDTH // 2)


LAYERS: dict[str, Layer] = {
    "softmax": Layer("n² d", "1", "1", lambda n: KINDS["softmax"](DIM, HEADS)),
    "linear": Layer("n d² / h", "1", "1", lambda n: KINDS["linear"](DIM, HEADS)),
    "linformer": Layer("r n d", "1", "1", linformer),
    "window": Layer(
        *("r n d", "1", "n / r", lambda n: MultiHeadAttention(DIM, HEADS)),
        run=lambda module, x: module(x, mask=window(WINDOW)),
    ),
    "gru": Layer(
        *("n d²", "n", "n", lambda n: nn.GRU(DIM, DIM, batch_first=True)),
        run=lambda module, x: module(x)[0],
    ),
    "convolution": Layer(
        "k n d²", "1", "n / k", convolution, run=lambda module, x: module(x.mT).mT
    ),
}
