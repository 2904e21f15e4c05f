"""Parts of a model that another run has learned."""

import shlex
from typing import Any

import torch
from torch import nn

from glassformer.errors import GlassformerError
from glassformer.runs.checksums import refuse_changed
from glassformer.runs.folder import RunFolder
from glassformer.tasks.job import JobTask
from glassformer.training.weights import put_weights, read_tensors, weights_of

BODY = ("frontend", "encoder", "decoder")  # a model whose body does not fit is another model


def begin_from(model: nn.Module, origin: RunFolder, part: str | None) -> list[str]:
    """Put what another run learned into a model: a part of it, or all that both have.

    Answers of another kind, such as other labels, are left to be learned. Returns the names of the
    parts that were taken.
    """
    refuse_untrained(origin)
    learned, own = read_tensors(origin.model), weights_of(model)
    chosen = {
        name: tensor
        for name, tensor in learned.items()
        if name in own and (part is None or f"{name}.".startswith(f"{part}."))
    }
    if part is None:
        strange = {part_of(name) for name in chosen if chosen[name].shape != own[name].shape}
        left_out = strange.difference(BODY)
        chosen = {name: t for name, t in chosen.items() if part_of(name) not in left_out}
    if not chosen:
        has = sorted({part_of(name) for name in learned})
        raise GlassformerError(
            f"{origin.path}: nothing there fits {part or 'this model'}; its parts are "
            f"{', '.join(has)}"
        )
    put_weights(model, own | chosen, str(origin.path))
    return sorted({part or part_of(name) for name in chosen})


def fresh_model(job: JobTask[Any, Any, Any], seed: int) -> nn.Module:
    """The job's model before it learned anything; settings that do not go together are refused."""
    torch.manual_seed(seed)
    try:
        return job.model()
    except ValueError as error:
        raise GlassformerError(f"this model cannot be built: {error}") from None


def refuse_untrained(origin: RunFolder) -> None:
    """Only a trained run has something to give."""
    origin.config()
    if not origin.model.exists():
        raise GlassformerError(
            f"{origin.path}: has no trained model; finish it with `glassformer resume "
            f"{shlex.quote(str(origin.path))}`"
        )
    refuse_changed(origin.path, data=False)


def part_of(name: str) -> str:
    """The part that a weight belongs to: the first word of its name."""
    return name.split(".")[0]
