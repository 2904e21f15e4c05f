"""One model in many processes: PyTorch's DDP, which takes the mean of their gradients."""

from contextlib import AbstractContextManager, nullcontext

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from glassformer import processes
from glassformer.training.fsdp import is_sharded
from glassformer.training.machine import Machine


def spread(model: nn.Module, machine: Machine) -> nn.Module:
    """The model as every process calls it; one that is dealt out does without."""
    if not processes.is_joined() or is_sharded(model):
        return model
    devices = [machine.device] if machine.device.type == "cuda" else None
    return DistributedDataParallel(model, device_ids=devices)


def alone(model: nn.Module, more_to_come: bool) -> AbstractContextManager[None]:
    """Where gradients are kept to oneself, because the step has more batches to come."""
    if more_to_come and isinstance(model, DistributedDataParallel):
        return model.no_sync()
    return nullcontext()
