"""Weights by name: out of a model, into a model, to disk and back. Shared ones are kept once."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from glassformer.errors import GlassformerError
from glassformer.files import replacing
from glassformer.training.fsdp import dealt_as, local

Weights = dict[str, Tensor]


def weights_of(model: nn.Module) -> Weights:
    """The model's own tensors, not copies; those it uses twice stand under their first name."""
    seen, found = set(), {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor.detach()
    return found


@torch.no_grad()
def put_weights(model: nn.Module, weights: Mapping[str, Tensor], origin: str) -> None:
    """Copy weights into a model; every one must fit, and none may be missing.

    Where the model is dealt out to several processes, each takes its part.
    """
    own = weights_of(model)
    strange = sorted(set(own) ^ set(weights))
    if strange:
        side = "lacks" if strange[0] in own else "has, unlike the model,"
        raise GlassformerError(f"{origin}: {side} {strange[0]}; it belongs to another model")
    for name, tensor in own.items():
        if tensor.shape != weights[name].shape:
            raise GlassformerError(
                f"{origin}: {name} has shape {tuple(weights[name].shape)}, the model wants "
                f"{tuple(tensor.shape)}; it belongs to another model"
            )
        if tensor.is_floating_point() != weights[name].is_floating_point():
            raise GlassformerError(
                f"{origin}: {name} holds {_kind(weights[name])}, the model wants {_kind(tensor)}; "
                f"it belongs to another model"
            )
        local(tensor).copy_(local(dealt_as(tensor, weights[name])))


@contextmanager
def using(model: nn.Module, weights: Mapping[str, Tensor] | None) -> Iterator[None]:
    """The model with other weights for a while; None leaves it as it is."""
    if weights is None:
        yield
        return
    before = {name: tensor.clone() for name, tensor in weights_of(model).items()}
    put_weights(model, weights, "the averaged weights")
    try:
        yield
    finally:
        put_weights(model, before, "the weights before")


def write_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """A safetensors file, on disk when this returns, which others may read as any new file."""
    with replacing(path) as half:
        half.touch(exist_ok=False)
        mode = half.stat().st_mode
        save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, half)
        half.chmod(mode)


def read_tensors(path: Path) -> Weights:
    """What `write_tensors` wrote; a broken file is refused in one line, and so is NaN in it."""
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise GlassformerError(
            f"{path}: not a whole file of weights ({error}); copy it again, or resume the run"
        ) from None
    for name, tensor in tensors.items():
        if not is_finite(tensor):
            raise GlassformerError(
                f"{path}: {name} holds NaN or infinity; the file is damaged: copy it again, or "
                f"train at a lower rate"
            )
    return tensors


def is_finite(tensor: Tensor) -> bool:
    """Whether it holds neither NaN nor infinity."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    low, high = tensor.aminmax()  # both NaN where there is one; needs no memory, unlike isfinite
    return bool(low.isfinite() and high.isfinite())


def _kind(tensor: Tensor) -> str:
    """What kind of numbers it holds, by name."""
    return str(tensor.dtype).removeprefix("torch.")
