"""The ladder, measured: every kernel against PyTorch's function, our module against others.

    loop, plain, fused, packed, flex   against F.scaled_dot_product_attention, called directly
    MultiHeadAttention                 against nn.MultiheadAttention and x-transformers

Rows are full and nothing is masked. In the first pair of each length PyTorch's function runs
against itself: the distance of that ratio from 1 is the noise of the others.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.benchmarks import peers
from glassformer.benchmarks.pairs import (
    FORWARD,
    TRAINING,
    Pair,
    batch_of,
    dtype_of,
    forward,
    module_work,
    training,
)
from glassformer.benchmarks.timing import Work
from glassformer.core.attention import MultiHeadAttention, attend, describe
from glassformer.core.kernels import KERNELS, Call
from glassformer.core.layout import Layout

HEADS, WIDTH = 8, 64
DIM = HEADS * WIDTH
SDPA = "torch sdpa"  # F.scaled_dot_product_attention, called directly

LONGEST = {("loop", "cpu"): 16, ("loop", "cuda"): 16, ("flex", "cpu"): 512}
WHY = {"loop": "the definition, number by number", "flex": "uncompiled on a CPU"}


def ladder(lengths: Sequence[int], device: torch.device) -> tuple[list[Pair], list[str]]:
    """Every pair this machine can measure, and a note for each one skipped."""
    pairs, notes = [], []
    for length in lengths:
        for case in (FORWARD, TRAINING):
            pairs.append(function_pair(None, case, length, device))
            for name in KERNELS:
                why = why_not(name, case, length, device)
                if why is None:
                    pairs.append(function_pair(name, case, length, device))
                elif why not in notes:
                    notes.append(why)
            pairs += module_pairs(case, length, device)
    if peers.installed("x_transformers") is None:
        notes.append(peers.NO_X)
    return pairs, notes


def why_not(name: str, case: str, length: int, device: torch.device) -> str | None:
    """Why a kernel is skipped; None if it is not."""
    q, k, v, call = inputs(name, 1, 1, case, device)
    missing = KERNELS[name].missing(q, k, v, call, False)
    if missing is not None:
        return f"{name}, {case}: skipped, it cannot {missing} on {device.type}"
    longest = LONGEST.get((name, device.type), length)
    if length > longest:
        return f"{name}: skipped beyond length {longest}; it is {WHY[name]}, which is slow"
    return None


def function_pair(name: str | None, case: str, length: int, device: torch.device) -> Pair:
    """A kernel, or PyTorch's function for None, against PyTorch's function."""

    def make() -> tuple[Work, Work]:
        theirs = sdpa_work(case, length, device)
        if name is None:
            return theirs, theirs
        return kernel_work(name, case, length, device), theirs

    return Pair(case=case, length=length, ours=name or SDPA, theirs=SDPA, make=make)


def kernel_work(name: str, case: str, length: int, device: torch.device) -> Work:
    """One of our kernels, through the public `attend`."""
    q, k, v, call = inputs(name, batch_of(device), length, case, device)

    def run() -> Tensor:
        return attend(q, k, v, call, kernel=name)

    return forward(run) if case == FORWARD else training(run, [q, k, v])


def sdpa_work(case: str, length: int, device: torch.device) -> Work:
    """PyTorch's function, called directly."""
    q, k, v, _ = inputs("fused", batch_of(device), length, case, device)

    def run() -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    return forward(run) if case == FORWARD else training(run, [q, k, v])


def inputs(
    name: str, rows: int, length: int, case: str, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Call]:
    """Random queries, keys and values in the kernel's form, and the call."""
    packed = KERNELS[name].form == "packed"
    if packed:
        layout = Layout.packed([length] * rows, device=device)
        shape: tuple[int, ...] = (rows * length, HEADS, WIDTH)
    else:
        layout, shape = Layout.full(rows, length, device), (rows, HEADS, length, WIDTH)
    q, k, v = (
        torch.randn(shape, device=device, dtype=dtype_of(device), requires_grad=case == TRAINING)
        for _ in range(3)
    )
    return q, k, v, describe(q, k, queries=layout, keys=layout)


def module_pairs(case: str, length: int, device: torch.device) -> list[Pair]:
    """Our module, with projections, against those of others."""

    def against_torch() -> tuple[Work, Work]:
        x, theirs = vectors(length, device), peers.torch_attention(DIM, HEADS)
        theirs.to(device, dtype_of(device))
        work = module_work(theirs, lambda: theirs(x, x, x, need_weights=False)[0], x, case)
        return our_module(x, case, bias=True), work

    library = peers.installed("x_transformers")

    def against_x() -> tuple[Work, Work]:
        assert library is not None
        x, theirs = vectors(length, device), peers.x_attention(library, DIM, HEADS)
        theirs.to(device, dtype_of(device))
        return our_module(x, case, bias=False), module_work(theirs, lambda: theirs(x), x, case)

    others = {"nn.MultiheadAttention": against_torch}
    if library is not None:
        others["x-transformers"] = against_x
    return [
        Pair(case=case, length=length, ours="MultiHeadAttention", theirs=name, make=make)
        for name, make in others.items()
    ]


def our_module(x: Tensor, case: str, *, bias: bool) -> Work:
    """Our module on the same vectors."""
    module = MultiHeadAttention(DIM, HEADS, bias=bias).to(x.device, x.dtype)
    return module_work(module, lambda: module(x), x, case)


def vectors(length: int, device: torch.device) -> Tensor:
    """Random vectors that require gradients, as inside a stack."""
    shape = (batch_of(device), length, DIM)
    return torch.randn(shape, device=device, dtype=dtype_of(device), requires_grad=True)
