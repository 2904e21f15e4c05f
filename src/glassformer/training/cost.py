"""The cost of a training step: FLOPs and memory.

FLOPs are those of matrix products and convolutions, forward and backward, as counted by PyTorch's
FlopCounterMode; a multiply-add counts as two. Formulas for the kernels it does not know are at the
end of this file. The `flex` kernel on CUDA is compiled and not counted.

The memory of weights, gradients, optimisers and averages follows from shapes: a model on the `meta`
device is enough. Activations are the tensors that autograd saves for the backward pass.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.attention.varlen  # registers the kernels named below
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

from glassformer.config import TrainConfig
from glassformer.tasks.task import SomeBatch, Task
from glassformer.training.objective import objective, reseeding
from glassformer.training.optimisers import group_parameters
from glassformer.training.setup import TrainSetup
from glassformer.training.weights import weights_of

Shape = Iterable[int]


@dataclass(frozen=True, slots=True)
class Part:
    """The number of trainable and of frozen parameters in a part of a model."""

    trainable: int
    frozen: int


@dataclass(frozen=True, slots=True)
class StateBytes:
    """Bytes of training state, including the gradients of a step."""

    weights: int
    gradients: int
    optimiser: int
    averages: int

    @property
    def total(self) -> int:
        """The sum of all."""
        return self.weights + self.gradients + self.optimiser + self.averages


@dataclass(frozen=True, slots=True)
class BatchCost:
    """The FLOPs of one batch, forward and backward, and its activations in bytes."""

    tokens: int
    flops: int
    activations: int


def parts_of(model: nn.Module) -> dict[str, Part]:
    """Parameter counts by top-level module; shared parameters count once, under the first name."""
    found: dict[str, Part] = {}
    for name, weight in model.named_parameters():
        part = name.split(".")[0]
        old = found.get(part, Part(0, 0))
        more = (weight.numel(), 0) if weight.requires_grad else (0, weight.numel())
        found[part] = Part(old.trainable + more[0], old.frozen + more[1])
    return found


def state_bytes(model: nn.Module, train: TrainConfig) -> StateBytes:
    """The bytes of training state of a model, from shapes alone.

    AdamW stores two numbers per weight and a step count per tensor; Muon stores one per weight.
    """
    trainable = [weight for weight in model.parameters() if weight.requires_grad]
    inside, matrices, others = group_parameters(model, trainable)
    by_muon = inside if train.optimiser.kind == "muon" else []
    by_adamw = [*matrices, *others] if by_muon else trainable
    count = torch.float32.itemsize
    weights = sum(x.nbytes for x in weights_of(model).values())
    return StateBytes(
        weights=weights,
        gradients=sum(x.nbytes for x in trainable),
        optimiser=sum(x.nbytes for x in by_muon) + sum(2 * x.nbytes + count for x in by_adamw),
        averages=sum(x.nbytes for x in weights_of(model).values()) if train.ema else 0,
    )


def batch_cost(model: nn.Module, task: Task, batch: SomeBatch, setup: TrainSetup) -> BatchCost:
    """Run a batch and count its cost; weights are unchanged and gradients are cleared."""
    saved = SavedTensors(model)
    model.train()
    with (
        FlopCounterMode(display=False, custom_mapping=FORMULAS) as counter,
        saved_tensors_hooks(saved.count, lambda tensor: tensor),
    ):
        with setup.machine.autocast():
            total, _ = objective(model, task, batch, setup.train.regularise, reseeding(setup.seed))
        total.backward()
    model.zero_grad(set_to_none=True)
    return BatchCost(batch.tokens, counter.get_total_flops(), saved.bytes)


class SavedTensors:
    """Counts the bytes that autograd saves, each storage once and the model's weights never."""

    def __init__(self, model: nn.Module) -> None:
        self.seen = {x.untyped_storage().data_ptr() for x in model.parameters()}
        self.bytes = 0

    def count(self, tensor: Tensor) -> Tensor:
        """The hook that autograd calls with each tensor it saves."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self.seen:
            self.seen.add(storage.data_ptr())
            self.bytes += storage.nbytes()
        return tensor.detach()  # the tensor itself could form a reference cycle


def _attention(q: Shape, k: Shape, v: Shape, *_: Any, **__: Any) -> int:
    """Scores and the weighted sum of values, for every query and key."""
    pairs, key_width, value_width = _pairs(q, k, v)
    return 2 * pairs * (key_width + value_width)


def _attention_backward(_: Shape, q: Shape, k: Shape, v: Shape, *__: Any, **___: Any) -> int:
    """Recomputed scores, then the gradients of weights, values, queries and keys."""
    pairs, key_width, value_width = _pairs(q, k, v)
    return 2 * pairs * (3 * key_width + 2 * value_width)


def _pairs(q: Shape, k: Shape, v: Shape) -> tuple[int, int, int]:
    rows, heads, queries, key_width = q
    *_, keys, value_width = v
    return rows * heads * queries * keys, key_width, value_width


def _varlen(op: Any, keys: int, values: int) -> Callable[..., int]:
    """Attention over packed rows: each query attends to the keys of its own row."""
    names = [argument.name for argument in op.default._schema.arguments]
    bounds = [place for place, name in enumerate(names) if name.startswith("cu_seq")]
    query, value = names.index("query"), names.index("value")

    def count(*args: Any, **_: Any) -> int:
        queries_by_row, keys_by_row = (args[place].diff().double() for place in bounds)
        heads, key_width = args[query].shape[-2:]
        width = keys * key_width + values * args[value].shape[-1]
        return 2 * int(queries_by_row @ keys_by_row) * heads * width

    count._get_raw = True  # type: ignore[attr-defined]  # passes tensors instead of shapes
    return count


def _recurrent(times: int) -> Callable[..., int]:
    """Recurrent layers fused into one kernel: every vector times every matrix."""

    def count(x: Shape, *matrices: Any, **_: Any) -> int:
        *rows, _width = x
        weights = matrices[0] if isinstance(matrices[0], list) else matrices[:2]
        return times * 2 * math.prod(rows) * sum(math.prod(w) for w in weights if len(w) == 2)

    return count


ATEN, PACKED, OURS = torch.ops.aten, torch.ops.torch_attn, torch.ops.glassformer
FORMULAS: dict[Any, Callable[..., int]] = {
    ATEN._scaled_dot_product_flash_attention_for_cpu: _attention,
    ATEN._scaled_dot_product_flash_attention_for_cpu_backward: _attention_backward,
    PACKED._varlen_attn: _varlen(PACKED._varlen_attn, 1, 1),
    PACKED._varlen_attn_backward: _varlen(PACKED._varlen_attn_backward, 3, 2),
    OURS.short_rows: _varlen(OURS.short_rows, 1, 1),
    OURS.short_rows_backward: _varlen(OURS.short_rows_backward, 3, 2),
    ATEN.mkldnn_rnn_layer: _recurrent(1),
    ATEN.mkldnn_rnn_layer_backward: _recurrent(2),
    ATEN._cudnn_rnn: _recurrent(1),
    ATEN._cudnn_rnn_backward: _recurrent(2),
}
