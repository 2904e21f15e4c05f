"""Other runs that a job needs, opened for it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from glassformer.config import MachineConfig
from glassformer.runs.folder import RunFolder
from glassformer.runs.trained import load_model, predictions, refuse_unusable
from glassformer.tasks import JOBS
from glassformer.tasks.extension import Companion
from glassformer.tasks.predictor import Prediction
from glassformer.training.machine import choose_machine


def open_companion(path: str, device: str) -> Companion:
    """A trained run, as a job may use it."""
    folder, machine = RunFolder(Path(path)), choose_machine(MachineConfig(device=device))
    config = folder.config()
    refuse_unusable(folder)
    task = folder.open_task(config, None)
    model = load_model(folder, config, task, machine)
    predictor = JOBS[config.job].predictor(task)

    def predict(inputs: Iterable[Any]) -> Iterator[Prediction]:
        return predictions(predictor, model, machine, inputs)

    return Companion(path=path, job=config.job, task=task, model=model, predict=predict)
