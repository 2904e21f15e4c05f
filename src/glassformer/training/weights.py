"""Weights by name: from a model, into a model, to disk and back. Shared weights are stored once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from glassformer.errors import GlassformerError
from glassformer.files import replacing
from glassformer.training.fsdp import local, sharded_like

Weights = dict[str, Tensor]


def weights_of(model: nn.Module) -> Weights:
    """The model's own tensors, not copies; shared tensors are listed under their first name."""
    seen, found = set(), {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


@torch.no_grad()
def load_weights(model: nn.Module, weights: Mapping[str, Tensor], origin: str) -> None:
    """Copy weights into a model; names, shapes and dtypes must all match.

    If the model is sharded over processes, each copies its shard.
    """
    own = weights_of(model)
    mismatched = sorted(set(own) ^ set(weights))
    if mismatched:
        problem = "missing weight" if mismatched[0] in own else "unexpected weight"
        raise GlassformerError(f"{origin}: {problem} {mismatched[0]}; it belongs to another model")
    for name, tensor in own.items():
        if tensor.shape != weights[name].shape:
            raise GlassformerError(
                f"{origin}: {name} has shape {tuple(weights[name].shape)}, the model expects "
                f"{tuple(tensor.shape)}; it belongs to another model"
            )
        if tensor.is_floating_point() != weights[name].is_floating_point():
            raise GlassformerError(
                f"{origin}: {name} holds {_dtype(weights[name])}, the model expects "
                f"{_dtype(tensor)}; it belongs to another model"
            )
        local(tensor).copy_(local(sharded_like(tensor, weights[name])))


@contextmanager
def using_weights(model: nn.Module, weights: Mapping[str, Tensor] | None) -> Iterator[None]:
    """Swap other weights into the model for the duration of the context; None changes nothing."""
    if weights is None:
        yield
        return
    before = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    load_weights(model, weights, "the averaged weights")
    try:
        yield
    finally:
        load_weights(model, before, "the original weights")


def write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write a safetensors file atomically."""
    with replacing(path) as temporary:
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, temporary)


def read_tensors(path: Path) -> Weights:
    """Read a safetensors file; a damaged file, NaN or infinity raises an error."""
    try:
        with path.open("rb"):  # safetensors calls a forbidden file missing
            tensors = load_file(path)
    except PermissionError as error:
        raise GlassformerError(
            f"{path}: cannot be read ({error.strerror}); check its permissions"
        ) from None
    except (OSError, SafetensorError) as error:
        raise GlassformerError(
            f"{path}: not a complete weights file ({error}); copy it again, or resume the run"
        ) from None
    for name, tensor in tensors.items():
        if not is_finite(tensor):
            raise GlassformerError(
                f"{path}: {name} holds NaN or infinity; the file is damaged: copy it again, or "
                f"train at a lower learning rate"
            )
    return tensors


def is_finite(tensor: Tensor) -> bool:
    """Whether a tensor holds neither NaN nor infinity."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    low, high = tensor.aminmax()  # NaN propagates to both; needs no extra memory, unlike isfinite
    return bool(low.isfinite() and high.isfinite())


def _dtype(tensor: Tensor) -> str:
    """The name of a tensor's dtype."""
    return str(tensor.dtype).removeprefix("torch.")
