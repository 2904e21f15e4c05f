"""Models too large for one process: every process holds a part of each weight.

PyTorch's FSDP2 gathers a block's weights when the block is called and lets them go after it. A
weight is then a DTensor, cut along its first axis; here is all that the rest needs to know of it.
"""

import warnings

from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from glassformer import processes
from glassformer.training.machine import Machine


def shard(model: nn.Module, machine: Machine) -> None:
    """Deal the weights out to the processes, in place: each block by itself, then the rest."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    # Nothing here changes in place what a block gives.
    warnings.filterwarnings("ignore", message=r"FSDP2-wrapped module .* returned a view tensor")
    mesh = init_device_mesh(machine.device.type, (processes.world_size(),))
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and name.split(".")[-1] == "blocks":
            for block in module:
                fully_shard(block, mesh=mesh)
                register_fsdp_forward_method(block, "keep")  # called before the block itself
    fully_shard(model, mesh=mesh)


def is_sharded(model: nn.Module) -> bool:
    """Whether each process holds a part of each weight."""
    return any(isinstance(parameter, DTensor) for parameter in model.parameters())


def is_part(tensor: Tensor) -> bool:
    """Whether other processes hold more of it."""
    return isinstance(tensor, DTensor)


def local(tensor: Tensor) -> Tensor:
    """What this process holds of a tensor; shares its memory."""
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def whole(tensor: Tensor) -> Tensor:
    """The tensor with all its parts; all processes must ask."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def dealt_as(like: Tensor, full: Tensor) -> Tensor:
    """A whole tensor, dealt out as `like` is; every process has all of it and keeps its part."""
    if not isinstance(like, DTensor) or isinstance(full, DTensor):
        return full
    full = full.to(like.device)
    return distribute_tensor(full, like.device_mesh, like.placements, src_data_rank=None)
