"""The bars: full layers in training, packing, and memory growth.

    layers    our attention and our encoder layer against those of PyTorch and x-transformers
    packing   rows of different lengths end to end, against the same rows padded
    growth    peak memory against length; fused kernels grow with n, a table of weights with n²

Dropout, if any, applies everywhere: attention weights, hidden units, residuals. The sizes are
fixed, so that a bar means the same on every machine.
"""

from dataclasses import dataclass
from functools import partial
from itertools import product

import torch
from torch import Tensor

from glassformer.benchmarks import peers
from glassformer.benchmarks.complexity import growth
from glassformer.benchmarks.memory import peak_memory
from glassformer.benchmarks.pairs import TRAINING, Pair, dtype_of, module_work
from glassformer.benchmarks.timing import Work
from glassformer.config import AttentionConfig, FeedForwardConfig, StackConfig
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import Mask, causal, everything
from glassformer.models.blocks.transformer import TransformerBlock
from glassformer.models.stacks import Encoder

BATCH = 8
SIZES = ((256, 4), (512, 8))  # dim, heads
LENGTHS = (128, 512)
DROPOUTS = (0.0, 0.1)
ORDERS = ("post", "pre")

MEDIANS = {20: 64, 100: 16}  # median length: rows
SPREAD = 0.6  # of the logarithm of the lengths; sentences have about that
DEPTH = 2

GROWTH_LENGTHS = (512, 1024, 2048, 4096)
GROWTH_BATCH = 2


def layers(device: torch.device) -> list[Pair]:
    """Our attention and our encoder layer against their peers, in training."""
    cases = product((None, *ORDERS), LENGTHS, SIZES, DROPOUTS, peers_here())
    return [
        layer_pair(order, size, length, dropout, device, against)
        for order, length, size, dropout, against in cases
    ]


def peers_here() -> list[str]:
    """The peers that are installed."""
    return ["torch.nn", "x-transformers"] if peers.installed("x_transformers") else ["torch.nn"]


def layer_pair(
    order: str | None,
    size: tuple[int, int],
    length: int,
    dropout: float,
    device: torch.device,
    against: str,
) -> Pair:
    """A layer with its norms in this order, or attention alone for None, against a peer's."""
    dim, heads = size
    what = "attention" if order is None else f"{order}-norm layer"

    def make() -> tuple[Work, Work]:
        x = torch.randn(
            BATCH, length, dim, device=device, dtype=dtype_of(device), requires_grad=True
        )
        bias = against == "torch.nn"  # x-transformers has none in attention
        if order is None:
            ours = our_attention(dim, heads, dropout, bias)
        else:
            ours = our_layer(dim, heads, order, dropout, bias)
        return layer_work(ours, x), layer_work(
            peers.layer_of(against, dim, heads, order, dropout), x
        )

    case = f"{what}, dim {dim}, dropout {dropout:g}"
    return Pair(case=case, length=length, ours="glassformer", theirs=against, make=make)


def layer_work(layer: peers.Layer, x: Tensor, case: str = TRAINING) -> Work:
    """One call of a layer, on the device of the vectors."""
    module, run = layer
    module.to(x.device, x.dtype)
    return module_work(module, partial(run, x), x, case)


def our_attention(dim: int, heads: int, dropout: float, bias: bool) -> peers.Layer:
    module = MultiHeadAttention(dim, heads, dropout=dropout, bias=bias)
    return module, module


def our_layer(dim: int, heads: int, order: str, dropout: float, bias: bool) -> peers.Layer:
    """The Transformer's block, as an encoder without positions calls it."""
    block = TransformerBlock(
        StackConfig(
            dim=dim,
            order=order,
            dropout=dropout,
            attention=AttentionConfig(heads=heads, dropout=dropout, bias=bias),
            feedforward=FeedForwardConfig(kind="relu", dropout=dropout),
        )
    )

    def run(x: Tensor) -> Tensor:
        return block(x, layout=Layout.full(x.shape[0], x.shape[1], x.device), mask=everything)

    return block, run


def packing(device: torch.device) -> list[Pair]:
    """Rows of log-normal lengths through an encoder, packed against padded."""
    return [packing_pair(ragged(median, rows), median, device) for median, rows in MEDIANS.items()]


def ragged(median: int, rows: int) -> list[int]:
    """Sentence-like lengths, many short and a few long: even quantiles of a log-normal."""
    shares = (torch.arange(rows) + 0.5) / rows
    lengths = median * (SPREAD * torch.special.ndtri(shares)).exp()
    return lengths.round().clamp(min=1).int().tolist()


def packing_pair(lengths: list[int], median: int, device: torch.device) -> Pair:
    """The same rows and encoder, packed and padded; the case states the share of padding."""
    (dim, heads), longest = SIZES[0], max(lengths)
    padding = 1 - sum(lengths) / (len(lengths) * longest)

    def make() -> tuple[Work, Work]:
        config = StackConfig(
            dim=dim, depth=DEPTH, dropout=0.0, attention=AttentionConfig(heads=heads)
        )
        encoder = Encoder(config).to(device, dtype_of(device))
        # Lengths only the device knows: on CUDA the encoder would pack the rows by itself.
        on_device = torch.tensor(lengths, device=device)
        in_rows = Layout.padded(on_device, longest=longest)
        end_to_end = Layout.packed(lengths, device=device)
        x = torch.randn(
            len(lengths), longest, dim, device=device, dtype=dtype_of(device), requires_grad=True
        )
        tokens = pack(x.detach(), end_to_end).requires_grad_()
        return (
            module_work(encoder, lambda: encoder(tokens, layout=end_to_end), tokens, TRAINING),
            module_work(encoder, lambda: encoder(x, layout=in_rows), x, TRAINING),
        )

    case = f"{len(lengths)} rows, median {median}, {padding:.0%} padding"
    return Pair(case=case, length=longest, ours="packed", theirs="padded", make=make)


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Peak memory of attention in training against length, and the exponent that fits."""

    case: str
    kernel: str
    lengths: tuple[int, ...]
    memory: tuple[int | None, ...]
    exponent: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthCase:
    """A case to measure: our attention under a mask, with the named kernel."""

    case: str
    kernel: str
    mask: Mask
    padded: bool


def growths() -> list[GrowthCase]:
    """No mask, causal and padding; `tiled`; and `plain`, as a control that grows with n²."""
    return [
        GrowthCase(case="no mask", kernel="auto", mask=everything, padded=False),
        GrowthCase(case="causal", kernel="auto", mask=causal, padded=False),
        GrowthCase(case="padding", kernel="auto", mask=everything, padded=True),
        GrowthCase(case="no mask", kernel="tiled", mask=everything, padded=False),
        GrowthCase(case="no mask", kernel="plain", mask=everything, padded=False),
    ]


def measure_growth(what: GrowthCase, device: torch.device) -> Growth:
    """Measure peak memory at every length."""
    memory = tuple(peak_at(what, length, device) for length in GROWTH_LENGTHS)
    return Growth(
        case=what.case,
        kernel=what.kernel,
        lengths=GROWTH_LENGTHS,
        memory=memory,
        exponent=growth(GROWTH_LENGTHS, memory),
    )


def peak_at(what: GrowthCase, length: int, device: torch.device) -> int | None:
    """Peak memory of forward and backward at one length."""
    dim, heads = SIZES[0]
    module = MultiHeadAttention(dim, heads).to(device, dtype_of(device))
    module.kernel = what.kernel
    rows = [length - row * length // 4 for row in range(GROWTH_BATCH)] if what.padded else None
    layout = None if rows is None else Layout.padded(rows, longest=length, device=device)
    x = torch.randn(
        GROWTH_BATCH, length, dim, device=device, dtype=dtype_of(device), requires_grad=True
    )
    work = module_work(module, lambda: module(x, mask=what.mask, layout=layout), x, TRAINING)
    return peak_memory(work, device)
