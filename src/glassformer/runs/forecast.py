"""Predicted against actual: what the first steps of a training said of the whole, and what it took.

It watches the steps that are taken anyway, and the first validation, so that nothing learns from it
or is random because of it. Checkpoints between validations, which take little, are not foreseen.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from glassformer import processes
from glassformer.files import write_json
from glassformer.runs.display import Display, clock, in_bytes
from glassformer.runs.folder import RunFolder, read_record
from glassformer.runs.timing import TRIED, Pace
from glassformer.tasks.job import JobTask
from glassformer.training import memory
from glassformer.training.cost import state_bytes
from glassformer.training.setup import Event, TrainSetup, Validation
from glassformer.training.state import State


@dataclass(frozen=True, kw_only=True, slots=True)
class Foretold:
    """What was foreseen after some steps for all steps that were taken, and what came.

    Seconds and bytes are those of learning, with its validations and checkpoints.
    """

    after: int
    steps: int
    seconds: float
    took_seconds: float
    bytes: int | None
    took_bytes: int | None

    def sentence(self) -> str:
        """For a person."""
        seconds = f"predicted {clock(self.seconds)}, took {clock(self.took_seconds)}"
        if self.bytes is None or self.took_bytes is None:
            return seconds
        return f"{seconds}; predicted {in_bytes(self.bytes)}, took {in_bytes(self.took_bytes)}"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What was known at a step: seconds spent so far, and how fast it goes."""

    step: int
    spent: float
    pace: Pace


class Watch:
    """Follows a training, foretells its end, and compares."""

    def __init__(self, state: State, job: JobTask[Any, Any, Any], setup: TrainSetup) -> None:
        self.state, self.job, self.setup, self.device = state, job, setup, setup.machine.device
        self.begun, self.learned = state.progress.step, state.progress.seconds
        self.warm: tuple[int, float] | None = None  # steps and seconds when the first report came
        self.foreseen: Foreseen | None = None
        self.took, self.peak = 0.0, memory.peak(self.device)
        self.peaks: dict[int, int] = {}  # by steps taken
        to_come = state_bytes(state.model, setup.train)
        held = memory.held(self.device) or 0  # with the weights and their averages
        self.fixed = held + to_come.gradients + to_come.optimiser

    def follow(self, events: Iterator[Event]) -> Iterator[Event]:
        """The same events, looked at as they pass."""
        memory.forget_peak(self.device)
        validates = bool(len(self.job.lengths("valid")))
        started = time.perf_counter()
        for event in events:
            before, self.took = self.took, time.perf_counter() - started
            if self.foreseen is None:
                self._look(event.step - self.begun)
                if isinstance(event, Validation):
                    self._foresee(event.step - self.begun, self.took - before)
                elif not validates:
                    self._foresee(event.step - self.begun, 0.0)
            yield event
        self.took = time.perf_counter() - started
        self.peak = memory.peak(self.device)

    def _look(self, done: int) -> None:
        """See how much is held; what came before the first report is slow and does not count."""
        if (peak := memory.peak(self.device)) is not None:
            self.peaks[done] = peak
        self.warm = self.warm or (done, self.state.progress.seconds - self.learned)

    def _foresee(self, done: int, validation: float) -> None:
        """After enough steps, see how fast it goes."""
        if done < TRIED:
            return
        first, before = self.warm or (0, 0.0)
        seconds = self.state.progress.seconds - self.learned
        step = (seconds - before) / (done - first) if done > first else seconds / done
        pace = Pace(step, validation, checkpoint=0.0)
        self.foreseen = Foreseen(self.begun + done, self.took, pace)

    def compare(self) -> Foretold | None:
        """What was foreseen beside what came; None for a training too short to foretell."""
        if self.foreseen is None:
            return None
        at, last, pace = self.foreseen.step, self.state.progress.step, self.foreseen.pace
        rest = pace.step * (last - at) + pace.validating(self.setup, at, last)
        return Foretold(
            after=at - self.begun,
            steps=last - self.begun,
            seconds=self.foreseen.spent + rest,
            took_seconds=self.took,
            bytes=self._bytes(last - self.begun),
            took_bytes=self.peak,
        )

    def _bytes(self, steps: int) -> int | None:
        return memory.grown(self.device, self.peaks, self.fixed, steps) if self.peaks else None

    def tell(self, folder: RunFolder, display: Display) -> None:
        """Say it, and write it down for the report; of several processes, the first does."""
        found = self.compare()
        if found is not None and processes.is_first():
            display.say(found.sentence())
            write_json(asdict(found), note_of(folder))


def note_of(folder: RunFolder) -> Path:
    """Where it is written down."""
    return folder.path / "prediction.json"


def prediction_fact(folder: RunFolder) -> dict[str, str]:
    """For the report: a fact, or none."""
    found = read_record(note_of(folder), Foretold)
    if found is None:
        return {}
    return {"predicted": f"after {found.after:,} of {found.steps:,} steps: {found.sentence()}"}
