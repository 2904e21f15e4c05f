"""Fully sharded data parallelism: every process holds a shard of each weight.

PyTorch's FSDP2 gathers the weights of a block when it is called and frees them afterwards. A weight
is then a DTensor, sharded along its first axis; the functions here are all that other modules need.
"""

import warnings

from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from glassformer import processes
from glassformer.training.machine import Machine


def shard(model: nn.Module, machine: Machine) -> None:
    """Shard the weights over the processes, in place: each block by itself, then the rest."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    # Nothing here modifies the output of a block in place.
    warnings.filterwarnings("ignore", message=r"FSDP2-wrapped module .* returned a view tensor")
    mesh = init_device_mesh(machine.device.type, (processes.world_size(),))
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and name.split(".")[-1] == "blocks":
            for block in module:
                fully_shard(block, mesh=mesh)
                register_fsdp_forward_method(block, "keep")  # called before the block itself
    fully_shard(model, mesh=mesh)


def is_sharded(model: nn.Module) -> bool:
    """Whether each process holds only a shard of each weight."""
    return any(isinstance(parameter, DTensor) for parameter in model.parameters())


def is_shard(tensor: Tensor) -> bool:
    """Whether other processes hold other shards of this tensor."""
    return isinstance(tensor, DTensor)


def local(tensor: Tensor) -> Tensor:
    """This process's shard of a tensor, sharing its memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def gathered(tensor: Tensor) -> Tensor:
    """The full tensor, gathered from all shards; all processes must call this."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def sharded_like(like: Tensor, full: Tensor) -> Tensor:
    """A full tensor, sharded as `like` is; every process holds all of it and keeps its shard."""
    if not isinstance(like, DTensor) or isinstance(full, DTensor):
        return full
    full = full.to(like.device)
    return distribute_tensor(full, like.device_mesh, like.placements, src_data_rank=None)
