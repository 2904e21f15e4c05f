"""Data parallelism: the same model in every process, with PyTorch's DDP averaging gradients."""

from contextlib import AbstractContextManager, nullcontext

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from glassformer import processes
from glassformer.training.fsdp import is_sharded
from glassformer.training.machine import Machine


def wrap_ddp(model: nn.Module, machine: Machine) -> nn.Module:
    """The model wrapped in DDP; unchanged if there is one process, or FSDP shards the model."""
    if not processes.is_joined() or is_sharded(model):
        return model
    devices = [machine.device] if machine.device.type == "cuda" else None
    return DistributedDataParallel(model, device_ids=devices)


def no_sync(model: nn.Module, more_to_come: bool) -> AbstractContextManager[None]:
    """Skip DDP's gradient synchronisation while the step has more batches to come."""
    if more_to_come and isinstance(model, DistributedDataParallel):
        return model.no_sync()
    return nullcontext()
