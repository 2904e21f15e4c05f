"""A model of your own: a module, or a function of the task that builds one.

A run folder holds weights and never code, so such a run is opened with its model again.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.tasks.job import AnyTask

OwnModel = nn.Module | Callable[[Any], nn.Module]
TRIED = 2  # rows
MISTAKES = (TypeError, ValueError, RuntimeError, AttributeError, LookupError, AssertionError)


def builder_of(model: object) -> Callable[[AnyTask], nn.Module]:
    """A function that builds the model for a task; a module is copied, and stays as it is."""
    if not isinstance(model, nn.Module) and not callable(model):
        raise GlassformerError(
            f"model must be a module, or a function of the task that builds one, got {model!r:.60}"
        )

    def build(task: AnyTask) -> nn.Module:
        built = copy.deepcopy(model) if isinstance(model, nn.Module) else model(task)
        if not isinstance(built, nn.Module):
            raise GlassformerError(
                f"model: {called(model)} must return a module, got {type(built).__name__}"
            )
        return built

    return build


def called(model: object) -> str:
    """What a model is called: its class, or the function that builds it."""
    kind = type(model) if isinstance(model, nn.Module) else model
    return str(getattr(kind, "__name__", type(model).__name__))


def refuse_other_model(config: Config, path: Path, given: object) -> None:
    """Refuse to open a run without its own model, or with one that it does not have."""
    if config.own_model and given is None:
        raise GlassformerError(
            f"{path}: its model is your own, {config.own_model}, and a run folder holds no code; "
            f"give it in Python, as in glassformer.load({str(path)!r}, model={config.own_model})"
        )
    if given is not None and not config.own_model:
        raise GlassformerError(
            f"{path}: was trained with a model of glassformer, not with your own; leave out model"
        )


def try_out(task: AnyTask, model: nn.Module) -> None:
    """Give a model a few rows, as training and its scores do, so that a mistake shows at once."""
    rows = np.arange(min(TRIED, len(task.lengths("train"))))
    batch = task.batch("train", rows, 0)
    model.eval()
    try:
        with torch.no_grad():
            task.loss(task.forward(model, batch), batch)
            if len(task.lengths("valid")):
                task.for_timing().answers(model, [task.batch("valid", rows[:1], None)])
    except MISTAKES as error:
        raise GlassformerError(
            f"model: {called(model)} does not do what {task.name} needs "
            f"({type(error).__name__}: {str(error).partition(chr(10))[0]}); see `A model of your "
            f"own` in docs/guides/training.md"
        ) from error
    finally:
        model.train()
