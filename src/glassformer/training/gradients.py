"""Gradients over all processes and batches of a step: normalised once, measured and clipped."""

from collections.abc import Collection

import torch
import torch.distributed as dist
from torch import Tensor, nn

from glassformer import processes
from glassformer.training.fsdp import is_shard, local


def normalise_and_clip(parameters: Collection[Tensor], count: Tensor, clip: float) -> Tensor:
    """Divide the gradients by the count of the step over all processes, then clip their norm.

    With several processes, PyTorch has already averaged the gradients over them, so they are
    divided by the mean count per process. Returns the norm before clipping.
    """
    sum_over_processes(count)
    gradients = [local(p.grad) for p in parameters if p.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if any(map(is_shard, parameters)):
        norm = sum_over_processes(norm**2).sqrt()
    scale = 1 / (count / processes.world_size()).clamp(min=1e-12)
    norm = norm * scale
    if clip:
        scale = scale * (clip / (norm + 1e-6)).clamp(max=1.0)
    torch._foreach_mul_(gradients, scale)
    return norm


def sum_over_processes(tensor: Tensor) -> Tensor:
    """All-reduce a tensor, in place."""
    if processes.world_size() > 1:
        dist.all_reduce(tensor)
    return tensor
