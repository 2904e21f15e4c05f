"""A run that is ready to train: its task opened once, its model built once."""

from dataclasses import dataclass

from torch import nn

from glassformer.config.run import Config
from glassformer.runs.folder import RunFolder
from glassformer.runs.warm_start import fresh_model
from glassformer.tasks.job import AnyTask
from glassformer.training.weights import load_weights, read_tensors


@dataclass(slots=True)
class Prepared:
    """A folder with samples and resolved settings, the opened task, and the model at step 0."""

    folder: RunFolder
    config: Config
    task: AnyTask
    model: nn.Module

    @classmethod
    def open(cls, folder: RunFolder) -> "Prepared":
        """The run in a folder."""
        config = folder.config()
        task = folder.open_task(config, folder.data)
        return cls(folder, config, task, initial_model(task, config, folder))


def initial_model(task: AnyTask, config: Config, folder: RunFolder) -> nn.Module:
    """The model before its first step: freshly initialised, or with weights of another run."""
    model = fresh_model(task, config.seed)
    put_initial(model, folder)
    return model


def put_initial(model: nn.Module, folder: RunFolder) -> None:
    """Load the initial weights that came from another run, if any."""
    if folder.initial.exists():
        load_weights(model, read_tensors(folder.initial), str(folder.initial))
