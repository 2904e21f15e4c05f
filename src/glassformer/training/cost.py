"""What a step of training costs: operations, and memory that follows from the layers built.

Operations are those of matrix products and convolutions, forwards and backwards, as PyTorch's
counter sees them run; a multiplication and the addition after it are two. It does not know every
kernel, so the formulas of those it lacks stand below. What `flex` does on CUDA is compiled and not
counted.

Memory of weights, gradients, optimisers and averages follows from shapes: a model on the `meta`
device, which has no numbers, is enough. Activations are what autograd keeps for the way back.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.attention.varlen  # makes the kernels known that are named below
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from glassformer.config import TrainConfig
from glassformer.tasks.task import SomeBatch, Task
from glassformer.training.objective import objective, reseeding
from glassformer.training.optimisers import sorted_out
from glassformer.training.setup import TrainSetup
from glassformer.training.weights import weights_of

Shape = Iterable[int]


@dataclass(frozen=True, slots=True)
class Part:
    """Parameters of a part of a model: those that learn, and those that are frozen."""

    learning: int
    frozen: int


@dataclass(frozen=True, slots=True)
class StateBytes:
    """What training holds in memory between two steps, and the gradients within one."""

    weights: int
    gradients: int
    optimiser: int
    averages: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.gradients + self.optimiser + self.averages

    @property
    def saved(self) -> int:
        """What a checkpoint of it takes on disk."""
        return self.weights + self.optimiser + self.averages


@dataclass(frozen=True, slots=True)
class BatchCost:
    """One batch, forwards and backwards: operations, and bytes kept for the way back."""

    tokens: int
    flops: int
    kept: int


def parts_of(model: nn.Module) -> dict[str, Part]:
    """Parameters by the first word of their names; shared ones count once, with the first."""
    found: dict[str, Part] = {}
    for name, weight in model.named_parameters():
        part, learns = name.split(".")[0], weight.requires_grad
        old = found.get(part, Part(0, 0))
        more = (weight.numel(), 0) if learns else (0, weight.numel())
        found[part] = Part(old.learning + more[0], old.frozen + more[1])
    return found


def state_bytes(model: nn.Module, train: TrainConfig) -> StateBytes:
    """What training this model holds, by shapes alone.

    AdamW remembers two numbers for each that it learns and a count for each tensor, Muon one.
    """
    learning = [weight for weight in model.parameters() if weight.requires_grad]
    inside, matrices, others = sorted_out(model, learning)
    by_muon = inside if train.optimiser.kind == "muon" else []
    by_adamw = [*matrices, *others] if by_muon else learning
    count = torch.float32.itemsize
    weights = sum(x.nbytes for x in weights_of(model).values())
    return StateBytes(
        weights=weights,
        gradients=sum(x.nbytes for x in learning),
        optimiser=sum(x.nbytes for x in by_muon) + sum(2 * x.nbytes + count for x in by_adamw),
        averages=sum(x.nbytes for x in weights_of(model).values()) if train.ema else 0,
    )


def batch_cost(model: nn.Module, task: Task, batch: SomeBatch, setup: TrainSetup) -> BatchCost:
    """What a batch costs, counted while it runs; the model keeps its weights and no gradients."""
    kept = Kept(model)
    model.train()
    with (
        FlopCounterMode(display=False, custom_mapping=FORMULAS) as counter,
        saved_tensors_hooks(kept.take, lambda tensor: tensor),
    ):
        with setup.machine.autocast():
            total, _ = objective(model, task, batch, setup.train.regularise, reseeding(setup.seed))
        total.backward()
    model.zero_grad(set_to_none=True)
    return BatchCost(batch.tokens, counter.get_total_flops(), kept.bytes)


class Kept:
    """Adds up what autograd keeps for the way back; what is kept twice, and weights, count once."""

    def __init__(self, model: nn.Module) -> None:
        self.seen = {x.untyped_storage().data_ptr() for x in model.parameters()}
        self.bytes = 0

    def take(self, tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.seen:
            self.seen.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor.detach()  # the tensor itself could keep itself alive


def _attention(q: Shape, k: Shape, v: Shape, *_: Any, **__: Any) -> int:
    """Scores, and the mean of the values; every query with every key."""
    pairs, key_width, value_width = _pairs(q, k, v)
    return 2 * pairs * (key_width + value_width)


def _attention_back(_: Shape, q: Shape, k: Shape, v: Shape, *__: Any, **___: Any) -> int:
    """The scores again, then the gradients of weights and values, of queries and of keys."""
    pairs, key_width, value_width = _pairs(q, k, v)
    return 2 * pairs * (3 * key_width + 2 * value_width)


def _pairs(q: Shape, k: Shape, v: Shape) -> tuple[int, int, int]:
    rows, heads, queries, key_width = q
    *_, keys, value_width = v
    return rows * heads * queries * keys, key_width, value_width


def _varlen(op: Any, keys: int, values: int) -> Callable[..., int]:
    """Attention over packed rows: each query with the keys of its own row."""
    names = [argument.name for argument in op.default._schema.arguments]

    def count(*args: Any, **_: Any) -> int:
        given = dict(zip(names, args, strict=False))
        lengths = given["cu_seq_q"].diff().double() @ given["cu_seq_k"].diff().double()
        heads, key_width = given["query"].shape[1:]
        width = keys * key_width + values * given["value"].shape[-1]
        return 2 * int(lengths) * heads * width

    count._get_raw = True  # type: ignore[attr-defined]  # lengths, and not only shapes
    return count


def _recurrent(times: int) -> Callable[..., int]:
    """Layers read in one kernel: every vector meets every matrix."""

    def count(x: Shape, *matrices: Any, **_: Any) -> int:
        *rows, _width = x
        weights = matrices[0] if isinstance(matrices[0], list) else matrices[:2]
        return times * 2 * math.prod(rows) * sum(math.prod(w) for w in weights if len(w) == 2)

    return count


ATEN, PACKED = torch.ops.aten, torch.ops.torch_attn
FORMULAS: dict[Any, Callable[..., int]] = {
    ATEN._scaled_dot_product_flash_attention_for_cpu: _attention,
    ATEN._scaled_dot_product_flash_attention_for_cpu_backward: _attention_back,
    PACKED._varlen_attn: _varlen(PACKED._varlen_attn, 1, 1),
    PACKED._varlen_attn_backward: _varlen(PACKED._varlen_attn_backward, 3, 2),
    ATEN.mkldnn_rnn_layer: _recurrent(1),
    ATEN.mkldnn_rnn_layer_backward: _recurrent(2),
    ATEN._cudnn_rnn: _recurrent(1),
    ATEN._cudnn_rnn_backward: _recurrent(2),
}
