"""Predicted against actual time and memory, predicted from the first steps of training.

It observes the first steps and the first validation as they happen, so it changes neither the
result nor the random state. Checkpoints between validations, which take little time, are not
predicted.
"""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from glassformer import processes
from glassformer.files import write_json
from glassformer.runs.display import Display, clock, in_bytes
from glassformer.runs.folder import RunFolder, read_record
from glassformer.runs.timing import TRIED, Pace
from glassformer.tasks.job import AnyTask
from glassformer.training import memory
from glassformer.training.cost import state_bytes
from glassformer.training.setup import Event, TrainSetup, Validation
from glassformer.training.state import State


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """Time and memory of all steps, as predicted after the first ones, and as measured.

    Seconds and bytes are those of training, with its validations and checkpoints.
    """

    after: int
    steps: int
    seconds: float
    took_seconds: float
    bytes: int | None
    took_bytes: int | None

    def sentence(self) -> str:
        """One sentence for the display and the report."""
        planned, took = clock(self.seconds), clock(self.took_seconds)
        if self.bytes is None or self.took_bytes is None:
            return f"planned {planned}; took {took}"
        memory, used = in_bytes(self.bytes), in_bytes(self.took_bytes)
        return f"planned {planned} and {memory}; took {took} and {used}"


@dataclass(frozen=True, slots=True)
class MeasuredPace:
    """The pace as measured at a step, and the seconds spent until then."""

    step: int
    spent: float
    pace: Pace


class Forecaster:
    """Observes a training run, predicts its time and memory, and compares."""

    def __init__(self, state: State, job: AnyTask, setup: TrainSetup) -> None:
        self.state, self.job, self.setup, self.device = state, job, setup, setup.machine.device
        self.first_step, self.seconds_before = state.progress.step, state.progress.seconds
        self.warm: tuple[int, float] | None = None  # steps and seconds when the first report came
        self.measured: MeasuredPace | None = None
        self.took, self.peak = 0.0, memory.peak(self.device)
        self.peaks: dict[int, int] = {}  # by number of steps
        to_come = state_bytes(state.model, setup.train)
        held = memory.in_use(self.device) or 0  # with the weights and their averages
        self.fixed = held + to_come.gradients + to_come.optimiser

    def follow(self, events: Iterator[Event]) -> Iterator[Event]:
        """Pass the events through, measuring as they happen."""
        memory.reset_peak(self.device)
        validates = bool(len(self.job.lengths("valid")))
        started = time.perf_counter()
        for event in events:
            before, self.took = self.took, time.perf_counter() - started
            if self.measured is None:
                self._record_peak(event.step - self.first_step)
                if isinstance(event, Validation):
                    self._measure(event.step - self.first_step, self.took - before)
                elif not validates:
                    self._measure(event.step - self.first_step, 0.0)
            yield event
        self.took = time.perf_counter() - started
        self.peak = memory.peak(self.device)

    def _record_peak(self, done: int) -> None:
        """Record memory; steps before the first report are slow and do not count."""
        if (peak := memory.peak(self.device)) is not None:
            self.peaks[done] = peak
        self.warm = self.warm or (done, self.state.progress.seconds - self.seconds_before)

    def _measure(self, done: int, validation: float) -> None:
        """Measure the pace once enough steps are done."""
        if done < TRIED:
            return
        first, before = self.warm or (0, 0.0)
        seconds = self.state.progress.seconds - self.seconds_before
        step = (seconds - before) / (done - first) if done > first else seconds / done
        pace = Pace(step, validation, checkpoint=0.0)
        self.measured = MeasuredPace(self.first_step + done, self.took, pace)

    def compare(self) -> Forecast | None:
        """Predicted against actual; None if training was too short to predict."""
        if self.measured is None:
            return None
        at, last, pace = self.measured.step, self.state.progress.step, self.measured.pace
        rest = pace.step * (last - at) + pace.validating(self.setup, at, last)
        return Forecast(
            after=at - self.first_step,
            steps=last - self.first_step,
            seconds=self.measured.spent + rest,
            took_seconds=self.took,
            bytes=self._bytes(last - self.first_step),
            took_bytes=self.peak,
        )

    def _bytes(self, steps: int) -> int | None:
        return (
            memory.projected_peak(self.device, self.peaks, self.fixed, steps)
            if self.peaks
            else None
        )

    def report(self, folder: RunFolder, display: Display) -> None:
        """Print the comparison and store it for the report, in the first process only."""
        forecast = self.compare()
        if forecast is not None and processes.is_first():
            display.say(forecast.sentence())
            write_json(asdict(forecast), note_of(folder))


def note_of(folder: RunFolder) -> Path:
    """Where the forecast is stored."""
    return folder.path / "prediction.json"


def measured_bytes(folder: RunFolder) -> int | None:
    """The most memory that a finished training used; None if it was not measured."""
    forecast = read_record(note_of(folder), Forecast)
    return None if forecast is None else forecast.took_bytes


def prediction_fact(folder: RunFolder) -> dict[str, str]:
    """The forecast as a fact of the report; empty if there is none."""
    forecast = read_record(note_of(folder), Forecast)
    if forecast is None:
        return {}
    progress = f"after {forecast.after:,} of {forecast.steps:,} steps"
    return {"predicted": f"{progress}: {forecast.sentence()}"}
