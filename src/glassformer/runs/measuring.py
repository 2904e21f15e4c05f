"""What a comparison measures of a finished run: answers and scores, speed, memory, size."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score
from glassformer.runs.arguments import Data
from glassformer.runs.fit import answers_on
from glassformer.runs.folder import reporter_of
from glassformer.runs.forecast import measured_bytes
from glassformer.runs.log import curves, read
from glassformer.runs.run import Run
from glassformer.runs.speed import WARM_UP
from glassformer.tasks.job import AnyTask
from glassformer.tasks.reporter import Reporter
from glassformer.training.setup import TrainSetup

LONGER = (2, 4)  # times the length in training
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """One run of a comparison.

    Attributes:
        where: The rows behind the answers.
        tokens_per_second: In training; None if it was too short to tell.
        rows_per_second: When answering.
        bytes: The peak of training; None if it was not measured.
        curve: The goal on the validation rows, by step.
        lengths: The goal by times the length of training; None where the model cannot read so far.
        longer: Scores on other rows.
    """

    answers: Any
    scores: dict[str, Score]
    where: list[str]
    reporter: Reporter[Any, Any]
    parameters: int
    steps: int
    tokens_per_second: float | None
    rows_per_second: float
    bytes: int | None
    curve: list[Point]
    lengths: dict[int, Score | None] = field(default_factory=dict)
    longer: dict[str, Score] = field(default_factory=dict)

    def is_comparable(self, other: "MeasuredRun") -> bool:
        """Whether both answer for the same rows, in the same terms."""
        terms = self.reporter.vocabulary, other.reporter.vocabulary
        return self.where == other.where and terms[0] == terms[1]


def measure(run: Run, split: str, longer: Sequence[Data]) -> MeasuredRun:
    """Measure a finished run on a split of its rows, and on longer ones."""
    config, folder = run.config, run.folder
    task = folder.open_task(config, folder.data)
    assert task.samples is not None
    setup = TrainSetup(config.train, config.data, run.machine, config.seed)
    started = time.perf_counter()
    answers = task.combine(answers_on(task, run.model, setup, split), split)
    took = time.perf_counter() - started
    where = [str(sample["where"]) for sample in task.samples.of(split)]
    reporter = reporter_of(task)
    scores = reporter.scores(answers)
    return MeasuredRun(
        answers=answers,
        scores=scores,
        where=where,
        reporter=reporter,
        parameters=sum(weight.numel() for weight in run.model.parameters()),
        steps=config.train.steps or 0,
        tokens_per_second=training_speed(run),
        rows_per_second=len(where) / took,
        bytes=measured_bytes(folder),
        curve=curves(folder.metrics).get(f"validation {task.goal}", []),
        lengths=by_length(run, task, setup, split, scores[task.goal]),
        longer={str(name): run.evaluate(name).scores[task.goal] for name in longer},
    )


def training_speed(run: Run) -> float | None:
    """The median number of tokens trained on in a second, without the first reports."""
    found = [line.get("tokens_per_second") for line in read(run.folder.metrics)]
    speeds = [speed for speed in found if isinstance(speed, float)]
    return median(speeds[WARM_UP:] or speeds) if speeds else None


def by_length(
    run: Run, task: AnyTask, setup: TrainSetup, split: str, usual: Score
) -> dict[int, Score | None]:
    """The goal on sequences longer than in training; empty where that does not apply.

    Args:
        usual: The goal at the length in training.
    """
    configs = {times: task.lengthened(times) for times in LONGER}
    found = {
        times: score_at(run, config, setup, split)
        for times, config in configs.items()
        if config is not None
    }
    return {1: usual, **found} if found else {}


def score_at(run: Run, config: Config, setup: TrainSetup, split: str) -> Score | None:
    """The goal with other settings of the task; None if the model cannot read so far."""
    task = run.folder.open_task(config, run.folder.data)
    longest = int(task.lengths(split).max())
    data = replace(setup.data, batch_tokens=max(setup.data.batch_tokens, longest))
    try:
        answers = answers_on(task, run.model, replace(setup, data=data), split)
    except (GlassformerError, ValueError):  # such as a table of positions that ends
        return None
    return reporter_of(task).scores(answers)[task.goal]
