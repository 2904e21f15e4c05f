"""Gradients of all processes and all batches of a step: divided once, measured, and clipped."""

import torch
import torch.distributed as dist
from torch import Tensor, nn

from glassformer import processes
from glassformer.training.fsdp import is_sharded, local


def settle(model: nn.Module, count: Tensor, clip: float) -> Tensor:
    """Divide the gradients by what the step counted in all processes, and cut those too long.

    PyTorch has taken their mean over the processes, where there are several; so the mean of the
    counts divides them. Returns their length as it was before the cut.
    """
    summed(count)
    gradients = [local(p.grad) for p in model.parameters() if p.grad is not None]
    torch._foreach_div_(gradients, (count / processes.world_size()).clamp(min=1e-12))
    length = nn.utils.get_total_norm(gradients)
    if is_sharded(model):
        length = summed(length**2).sqrt()
    if clip:
        torch._foreach_mul_(gradients, (clip / (length + 1e-6)).clamp(max=1.0))
    return length


def summed(tensor: Tensor) -> Tensor:
    """The sum over all processes, in place."""
    if processes.world_size() > 1:
        dist.all_reduce(tensor)
    return tensor
