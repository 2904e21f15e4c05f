"""Loading a trained model from a run folder, and its predictions."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from glassformer.config import MachineConfig
from glassformer.config.own_code import is_own, refuse_code
from glassformer.config.run import Config
from glassformer.data.in_memory import is_missing
from glassformer.errors import GlassformerError
from glassformer.runs.arguments import path_of
from glassformer.runs.folder import RunFolder
from glassformer.runs.limits import within_limits
from glassformer.runs.own_model import OwnModel, builder_of, refuse_other_model
from glassformer.runs.warm_start import fresh_model, refuse_untrained
from glassformer.tasks import JOBS
from glassformer.tasks.extension import Companion
from glassformer.tasks.job import AnyTask
from glassformer.tasks.predictor import Partial, Prediction, Predictor
from glassformer.training.machine import Machine, choose_machine
from glassformer.training.weights import Weights, load_weights, read_tensors


def open_folder(path: str | Path, model: OwnModel | None) -> RunFolder:
    """The folder of a run, to be opened with its own model if it has one."""
    folder = RunFolder(path_of(path, "a run"))
    config = folder.config()
    if is_own(config.model.frontend.kind):
        refuse_code(config.model.frontend.kind)
    refuse_other_model(config, folder.path, model)
    return folder if model is None else replace(folder, own_model=builder_of(model))


def load_model(folder: RunFolder, config: Config, task: AnyTask, machine: Machine) -> nn.Module:
    """The trained model, on its device."""
    weights = read_tensors(folder.model)
    if not weights:
        return task.without_network().to(machine.device).eval()
    refuse_other_sizes(folder, config, weights)
    with within_limits(folder.path):
        model = fresh_model(task, config.seed)
    load_weights(model, weights, str(folder.model))
    return model.to(machine.device).eval()


def refuse_other_sizes(folder: RunFolder, config: Config, weights: Weights) -> None:
    """Refuse settings that the weights cannot be of, before minutes or gigabytes go into building.

    There are as many tensors as layers at least, and some have the width of a stack for an axis.
    """
    if config.own_model:
        return
    stacks = [stack for stack in (config.model.encoder, config.model.decoder) if stack is not None]
    layers = sum(stack.depth for stack in stacks)
    if layers > len(weights):
        raise GlassformerError(
            f"{folder.config_file}: declares {layers:,} layers, but the model has {len(weights):,} "
            f"tensors; copy the run again"
        )
    axes = {size for tensor in weights.values() for size in tensor.shape}
    for stack in stacks:
        if stack.dim not in axes:
            raise GlassformerError(
                f"{folder.config_file}: declares a width of {stack.dim:,}, which no tensor of the "
                f"model has; copy the run again"
            )


def predictions(
    predictor: Predictor[Any, Any], model: nn.Module, machine: Machine, inputs: Iterable[Any]
) -> Iterator[Prediction]:
    """Yield predictions one by one as inputs arrive."""
    found = partial_predictions(predictor, model, machine, inputs)
    return (one for one in found if isinstance(one, Prediction))


def partial_predictions(
    predictor: Predictor[Any, Any], model: nn.Module, machine: Machine, inputs: Iterable[Any]
) -> Iterator[Prediction | Partial]:
    """Yield partial answers while they are written, then each prediction.

    A missing input, such as None, has an empty prediction.
    """
    waiting = deque[bool]()  # whether each of the inputs that are not answered yet is missing

    def accepted() -> Iterator[Any]:
        for given in inputs:
            given = predictor.blank if is_missing(given) else given
            waiting.append(given is None)
            if given is not None:
                yield predictor.accept(given)

    # all that is there can be worked on at once
    found = predictor.predict(model, [*accepted()] if isinstance(inputs, list) else accepted())
    without_gradients, precision = torch.no_grad(), machine.autocast()
    while True:
        with without_gradients, precision:  # not while the caller runs
            prediction = next(found, None)
        if isinstance(prediction, Partial):
            yield prediction
            continue
        while waiting and waiting[0]:
            waiting.popleft()
            yield Prediction("", 0.0, {}, empty=True)
        if prediction is None:
            return
        waiting.popleft()
        yield prediction


def open_companion(path: str, device: str) -> Companion:
    """A trained run, as a job may use it."""
    folder, machine = RunFolder(Path(path)), choose_machine(MachineConfig(device=device))
    config = folder.config()
    refuse_untrained(folder)
    task = folder.open_task(config, None)
    model = load_model(folder, config, task, machine)
    predictor = JOBS[config.job].predictor(task)

    def predict(inputs: Iterable[Any]) -> Iterator[Prediction]:
        return predictions(predictor, model, machine, inputs)

    return Companion(path=path, job=config.job, task=task, model=model, predict=predict)
