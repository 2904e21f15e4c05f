"""Running sums since the last report.

They stay on the device until they are reported. A report is read late: once closed, its sums are
sent for, and arrive while the device runs the next step.
"""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from glassformer import processes
from glassformer.training.diverged import DivergedError
from glassformer.training.gradients import sum_over_processes
from glassformer.training.loader import BatchSource
from glassformer.training.schedules import lr_at
from glassformer.training.setup import Step, TrainSetup


@runtime_checkable
class Moment(Protocol):
    """A time by a GPU's own clock, such as `torch.cuda.Event`."""

    def elapsed_time(self, later: Any, /) -> float:
        """Milliseconds from this one to a later one."""


Span = tuple[Moment, Moment]  # start and end of a step on a GPU


class Meters:
    """The summed loss and its count, the number of tokens, and the largest gradient norm.

    Args:
        since: Sums to continue from, as returned by `sums`.
        idle_since: On a GPU, the end of the step before, if nothing else followed it.
    """

    def __init__(
        self,
        device: torch.device,
        since: Sequence[float] = (),
        idle_since: Moment | None = None,
    ) -> None:
        total, count, tokens, norm = since or (0.0, 0.0, 0.0, 0.0)
        if not processes.is_first():
            total, count, tokens = 0.0, 0.0, 0.0  # the first process holds the sum over all
        self.total, self.count, self.norm = (
            torch.full((), number, device=device)  # filled there: a copy would wait for the device
            for number in (total, count, norm)
        )
        self.tokens = tokens
        self.history: list[tuple[int, BatchSource | None, Tensor]] = []
        self.gpu_spans: list[Span] = []
        self.idle_since, self.ended = idle_since, idle_since
        self.waits: list[float] = []
        self.started = time.perf_counter()

    def begin_step(self) -> None:
        """Mark the start of a step on a GPU; its time is read with the report."""
        if self.total.device.type == "cuda":
            self.step_start = torch.cuda.Event(enable_timing=True)
            self.step_start.record()

    def end_step(self) -> None:
        """Mark the end of a step on a GPU."""
        if self.total.device.type == "cuda":
            step_end = torch.cuda.Event(enable_timing=True)
            step_end.record()
            self.gpu_spans.append((self.step_start, step_end))
            self.ended = step_end

    @contextmanager
    def waiting_for_data(self) -> Iterator[None]:
        """Count the time inside as time spent waiting for the next batch."""
        before = time.perf_counter()
        yield
        self.waits.append(time.perf_counter() - before)

    def add(
        self, step: int, source: BatchSource | None, total: Tensor, count: Tensor, tokens: int
    ) -> None:
        """Add the loss of one batch."""
        self.total += total
        self.count += count
        self.tokens += tokens
        self.history.append((step, source, total))

    def add_norm(self, step: int, source: BatchSource | None, norm: Tensor) -> None:
        """Add the gradient norm of one step."""
        self.norm = torch.maximum(self.norm, norm)
        self.history.append((step, source, norm))

    def close(self, step: int) -> "Meters":
        """End after this step. The sums are sent for; only `read` waits for them."""
        self.step, self.spent = step, time.perf_counter() - self.started
        self.sent = torch.stack([self.total, self.count, self.norm]).to("cpu", non_blocking=True)
        if self.total.is_cuda:
            self.arrived = torch.cuda.Event()
            self.arrived.record()
        return self

    def sums(self) -> list[float]:
        """Total loss, count and tokens over all processes, and the largest norm."""
        if self.total.is_cuda:
            self.arrived.synchronize()
        total, count, norm = self.sent.tolist()
        local = torch.tensor([total, count, self.tokens], dtype=torch.float64)
        return [*sum_over_processes(local).tolist(), norm]

    def read(self, setup: TrainSetup, lr_scale: float = 1.0) -> Step:
        """The report; NaN or infinity in it raises DivergedError."""
        total, count, tokens, norm = self.sums()
        loss = total / max(count, 1e-12)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise DivergedError(loss, norm, *self.first_non_finite(self.step))
        lr = lr_scale * lr_at(self.step, setup.steps, setup.train.optimiser)
        busy = sum(start.elapsed_time(end) for start, end in self.gpu_spans) / 1000 / self.spent
        gpu_busy = min(1.0, busy) if self.gpu_spans else None
        waited = idle_waits(self.waits, self.gpu_spans, self.idle_since)
        speed, data_wait = tokens / self.spent, waited / self.spent
        return Step(self.step, loss, lr, norm, speed, data_wait, gpu_busy)

    def first_non_finite(self, step: int) -> tuple[int, BatchSource | None]:
        """The step and batch of the first NaN or infinity; by default the step given."""
        for found, source, number in self.history:
            if processes.any_of(not math.isfinite(float(number))):
                return found, source
        return step, None


def idle_waits(waits: Sequence[float], spans: Sequence[Span], idle_since: Moment | None) -> float:
    """Seconds of the waits in which the device had nothing to do.

    A GPU mostly still runs the step before; its own clock tells for how long it ran none.
    """
    if not spans:
        return sum(waits, 0.0)
    ends = [idle_since, *(end for _, end in spans)]
    gaps = (
        math.inf if end is None else end.elapsed_time(start) / 1000
        for end, (start, _) in zip(ends, spans, strict=False)
    )
    return sum(map(min, waits, gaps), 0.0)
