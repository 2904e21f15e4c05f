"""The ladder, measured: every kernel against PyTorch's function, our module against others.

    loop, plain, fused, packed, flex   against F.scaled_dot_product_attention, called directly
    MultiHeadAttention                 against nn.MultiheadAttention and x-transformers

Rows are full and nothing is masked. In the first pair of each length PyTorch's function runs
against itself: the distance of that ratio from 1 is the noise of the others.
"""

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.benchmarks import peers
from glassformer.benchmarks.layers import layer_work, our_attention, peers_here
from glassformer.benchmarks.pairs import (
    FORWARD,
    TRAINING,
    Pair,
    batch_of,
    dtype_of,
    forward,
    training,
)
from glassformer.benchmarks.timing import Work
from glassformer.core.attention import attend, describe
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
        theirs = function_work(None, case, length, device)
        return theirs if name is None else function_work(name, case, length, device), theirs

    return Pair(case=case, length=length, ours=name or SDPA, theirs=SDPA, make=make)


def function_work(name: str | None, case: str, length: int, device: torch.device) -> Work:
    """One of our kernels, through the public `attend`, or PyTorch's function for None."""
    q, k, v, call = inputs(name or "fused", batch_of(device), length, case, device)
    run = partial(F.scaled_dot_product_attention, q, k, v)
    if name is not None:
        run = partial(attend, q, k, v, call, kernel=name)
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
    names = {"torch.nn": "nn.MultiheadAttention"}
    return [
        Pair(
            case=case,
            length=length,
            ours="MultiHeadAttention",
            theirs=names.get(against, against),
            make=partial(modules, against, case, length, device),
        )
        for against in peers_here()
    ]


def modules(against: str, case: str, length: int, device: torch.device) -> tuple[Work, Work]:
    """Both on random vectors that require gradients, as inside a stack."""
    shape = (batch_of(device), length, DIM)
    x = torch.randn(shape, device=device, dtype=dtype_of(device), requires_grad=True)
    ours = our_attention(DIM, HEADS, 0.0, bias=against == "torch.nn")  # x-transformers has none
    theirs = peers.layer_of(against, DIM, HEADS, None, 0.0)
    return layer_work(ours, x, case), layer_work(theirs, x, case)
