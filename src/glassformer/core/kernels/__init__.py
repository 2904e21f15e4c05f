"""Kernels: six ways to compute the same attention, from the one to read to the ones that run.

    loop    the definition, one number at a time            the reference in tests
    plain   softmax(q kᵀ * scale + bias) v                  the one to read; shows the weights
    tiled   the same tile by tile, like FlashAttention      to read how memory is saved
    fused   PyTorch's scaled_dot_product_attention          what runs on padded batches
    packed  variable-length flash attention                 what runs on packed batches
    flex    masks and biases compiled into the kernel       long sequences with unusual masks

All give the same answer. Each declares what it supports (`call.py`), and `choose` picks from that;
`forms` converts batches in the other layout. For short rows on a GPU, `packed` uses kernels of its
own (`short_rows`, in Triton: `short_rows_kernel`).

To add one, write a file with a function (q, k, v, call) -> answer and a `Kernel` that says what it
supports, and list it here; the tests then compare it with `loop`.
"""

from glassformer.core.kernels.call import Call, Kernel, Supports
from glassformer.core.kernels.flex import FLEX
from glassformer.core.kernels.fused import FUSED
from glassformer.core.kernels.loop import LOOP
from glassformer.core.kernels.packed import PACKED
from glassformer.core.kernels.plain import PLAIN
from glassformer.core.kernels.tiled import TILED
from glassformer.core.shapes import Keys, Queries, Values
from glassformer.errors import unknown

__all__ = ["KERNELS", "Call", "Kernel", "Supports", "choose"]

KERNELS: dict[str, Kernel] = {
    "loop": LOOP,
    "plain": PLAIN,
    "tiled": TILED,
    "fused": FUSED,
    "packed": PACKED,
    "flex": FLEX,
}

# Unless one is forced: the first that suits the call and supports it.
PREFERENCE = ("packed", "flex", "fused", "plain")


def choose(
    q: Queries, k: Keys, v: Values, call: Call, *, forced: str = "auto", weights: bool = False
) -> Kernel:
    """The kernel for this call: the forced one, or the first that suits and supports it."""
    if forced == "auto":
        for name in PREFERENCE:
            kernel = KERNELS[name]
            if kernel.suits(q, call) and kernel.missing(q, k, v, call, weights) is None:
                return kernel
    return _forced("plain" if forced == "auto" else forced, q, k, v, call, weights)


def _forced(name: str, q: Queries, k: Keys, v: Values, call: Call, weights: bool) -> Kernel:
    """The named kernel, or an error that says why not."""
    if name not in KERNELS:
        raise ValueError(unknown("kernel", name, [*KERNELS, "auto"]))
    why = KERNELS[name].missing(q, k, v, call, weights)
    if why is not None:
        others = [n for n, o in KERNELS.items() if o.missing(q, k, v, call, weights) is None]
        advice = f"use auto or {' or '.join(others)}" if others else "move it to cpu, cuda or mps"
        raise ValueError(f"the {name} kernel cannot {why} on {q.device.type}; {advice}")
    return KERNELS[name]
