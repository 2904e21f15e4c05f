"""Models of one's own: how a job calls a module that is none of glassformer's classes."""

from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from glassformer.errors import GlassformerError


def is_a(model: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether a model, or the one that DDP wraps, is of a class."""
    return isinstance(model.module if isinstance(model, DistributedDataParallel) else model, kind)


def given(**arguments: Any) -> dict[str, Any]:
    """The keyword arguments that are not None: a module need not have the others."""
    return {name: value for name, value in arguments.items() if value is not None}


def refuse_other(model: nn.Module, kind: type[nn.Module], **options: object) -> None:
    """Refuse options that look inside a model of this class, if one is set."""
    for name, value in options.items():
        if value and not is_a(model, kind):
            raise GlassformerError(
                f"--{name} looks inside a model of glassformer, and this one is your own, "
                f"{type(model).__name__}; leave it out"
            )
