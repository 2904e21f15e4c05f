"""Our side: a run prepared as `glassformer train` does it, trained by the loop it uses.

Nothing of a run is left out but validations and checkpoints: batches are made by the loader while
the model trains, and the loop reads its numbers every ten steps, as by default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int

from glassformer.benchmarks.training.race import Contest, Peer
from glassformer.config import DataConfig, MachineConfig, TrainConfig
from glassformer.config.values import Values, merge_values
from glassformer.runs.display import Display
from glassformer.runs.prepare import prepare
from glassformer.runs.recipes import read_recipe
from glassformer.runs.request import TrainRequest
from glassformer.tasks import JOBS
from glassformer.tasks.task import Task
from glassformer.training.cost import batch_cost
from glassformer.training.loop import train
from glassformer.training.machine import training_machine
from glassformer.training.setup import Note, Step, TrainSetup, Trouble
from glassformer.training.state import State

STEPS = 10  # between two reports
FOREVER = 1_000_000_000  # steps; no benchmark gets there
COUNTED = 8192  # tokens, about, whose operations are counted


@dataclass(frozen=True, slots=True)
class Work:
    """A task, and how it is trained."""

    task: Task[Any, Any]
    setup: TrainSetup


def job_with(model: str, role: str) -> str:
    """The job that trains this kind of model on samples with this first value."""
    found = {(JOBS[name].model, JOBS[name].schema.roles[0].name): name for name in JOBS}
    return found[model, role]


def prepared(job: str, data: Path, run: Path, values: Values, device: torch.device) -> Work:
    """The task of a run on these data, with the settings of the job where none are given."""
    return trained_as(
        TrainRequest(
            job=job, data=(str(data),), run=run, values=values, pretrain=False, device=device.type
        )
    )


def followed(
    recipe: str, folder: Path, device: torch.device, instead: tuple[Path, Values] | None
) -> Work:
    """The task of the last stage of a recipe, or of one on other data with other settings."""
    stage = read_recipe(recipe).stages[-1]
    given = {item.name: getattr(stage, item.name) for item in fields(stage)}
    given |= {"run": folder / recipe, "device": device.type}
    values = merge_values(stage.values, {"machine": {"threads": torch.get_num_threads()}})
    if stage.values.get("model", {}).get("members"):  # a peer is one network
        values = merge_values(values, {"model": {"members": 1}})
    if instead is not None:
        data, others = instead
        given |= {"data": (str(data),), "columns": {}, "group": None}
        values = merge_values(values, others)
    return trained_as(TrainRequest(**given | {"values": values}))


def trained_as(request: TrainRequest) -> Work:
    """The task of a run as requested, prepared by the product itself."""
    found = prepare(request, request.resolve(), Display(quiet=True), suits=False)
    return Work(found.task, endless(found.config.train, found.config.data, found.config.machine))


def endless(train: TrainConfig, data: DataConfig, machine: MachineConfig) -> TrainSetup:
    """The same training without an end, and so without validations."""
    never: dict[str, Any] = dict.fromkeys(("epochs", "time", "save_every", "patience"))
    longer = replace(train, **never, steps=FOREVER, validate_every=FOREVER, log_every=STEPS)
    return TrainSetup(longer, data, training_machine(machine), seed=0)


class ProductSide:
    """Our loop, paused between two of its reports.

    Args:
        counts: What each training row counts.
    """

    def __init__(self, work: Work, counts: Int[np.ndarray, " rows"]) -> None:
        self.device = work.setup.machine.device
        self.made: list[int] = []
        self.counted = 0
        self.remarks: list[str] = []
        count_batches(work.task, counts, self.made)
        torch.manual_seed(0)
        state = State(work.task.model().to(self.device), work.setup.train)
        self.events = train(state, work.task, work.setup)

    def advance(self) -> int:
        """Train until the next report."""
        while not isinstance(event := next(self.events), Step):
            if isinstance(event, Note | Trouble):
                self.remarks.append(event.text if isinstance(event, Note) else event.what)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        first, self.counted = self.counted, len(self.made)
        return sum(self.made[first : self.counted])

    def close(self) -> None:
        self.events.close()


def contest(
    case: str, work: Work, counts: Int[np.ndarray, " rows"], peers: Mapping[str, Peer]
) -> Contest:
    """Ours against these peers, on rows that count so much."""
    ours, flops = partial(ProductSide, work, counts), flops_per_token(work, counts)
    return Contest(case=case, ours=ours, peers=peers, flops=flops)


def count_batches(task: Task[Any, Any], counts: Int[np.ndarray, " rows"], made: list[int]) -> None:
    """Note what each batch counts when it is made.

    Batches are made a little ahead of their steps, always by as much, so that over many steps the
    sum is that of the steps.
    """
    make = type(task).batch

    def counting(split: str, rows: Int[np.ndarray, " chosen"], *more: Any, **others: Any) -> Any:
        made.append(int(counts[rows].sum()))
        return make(task, split, rows, *more, **others)

    setattr(task, "batch", counting)  # noqa: B010  # mypy refuses an assignment to a method


def flops_per_token(work: Work, counts: Int[np.ndarray, " rows"]) -> float:
    """Operations of training for each token that counts, by rows from all over the data."""
    several = min(len(counts), max(1, round(COUNTED / float(counts.mean()))))
    rows = np.linspace(0, len(counts) - 1, several).astype(np.int64)
    device = work.setup.machine.device
    batch = type(work.task).batch(work.task, "train", rows, 0).to(device)
    cost = batch_cost(work.task.model().to(device), work.task, batch, work.setup)
    return cost.flops / float(counts[rows].sum())
