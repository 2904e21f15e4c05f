"""Sums since the last report, on the device: numbers are read only when they are told."""

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from glassformer import processes
from glassformer.training.gradients import summed
from glassformer.training.loader import Place
from glassformer.training.schedules import lr_at
from glassformer.training.setup import Step, TrainSetup
from glassformer.training.trouble import DivergedError


class Meters:
    """What was lost, over how many things, in how many tokens, and the longest gradient.

    Args:
        since: Sums to go on from, as `sums` gave them.
    """

    def __init__(self, device: torch.device, since: Sequence[float] = ()) -> None:
        total, count, tokens, norm = since or (0.0, 0.0, 0.0, 0.0)
        if not processes.is_first():
            total, count, tokens = 0.0, 0.0, 0.0  # the first process has all of it
        self.total = torch.tensor(total, device=device)
        self.count = torch.tensor(count, device=device)
        self.norm = torch.tensor(norm, device=device)
        self.tokens = tokens
        self.marks: list[tuple[int, Place | None, Tensor]] = []
        self.spans: list[tuple[torch.cuda.Event, torch.cuda.Event]] = []
        self.started, self.waited = time.perf_counter(), 0.0

    def begin_step(self) -> None:
        """From here on a GPU has a step to make; how long that takes is read with the rest."""
        if self.total.device.type == "cuda":
            self.begun = torch.cuda.Event(enable_timing=True)
            self.begun.record()

    def end_step(self) -> None:
        """All of the step is on its way."""
        if self.total.device.type == "cuda":
            ended = torch.cuda.Event(enable_timing=True)
            ended.record()
            self.spans.append((self.begun, ended))

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Inside, nothing is learned: the next batch is not ready yet."""
        before = time.perf_counter()
        yield
        self.waited += time.perf_counter() - before

    def add(
        self, step: int, place: Place | None, total: Tensor, count: Tensor, tokens: int
    ) -> None:
        """One batch more."""
        self.total += total
        self.count += count
        self.tokens += tokens
        self.marks.append((step, place, total))

    def add_norm(self, step: int, place: Place | None, norm: Tensor) -> None:
        """The length of one step's gradient."""
        self.norm = torch.maximum(self.norm, norm)
        self.marks.append((step, place, norm))

    def sums(self) -> list[float]:
        """All of it as plain numbers, over all processes."""
        total, count = torch.stack([self.total, self.count]).tolist()
        found = torch.tensor([total, count, self.tokens], dtype=torch.float64)
        return [*summed(found).tolist(), float(self.norm)]

    def read(self, step: int, setup: TrainSetup, pace: float = 1.0) -> Step:
        """The report; numbers that are none end the training."""
        total, count, tokens, norm = self.sums()
        loss = total / max(count, 1e-12)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise DivergedError(loss, norm, *self.first_bad(step))
        lr = pace * lr_at(step, setup.steps, setup.train.optimiser)
        spent = time.perf_counter() - self.started
        busy = sum(begun.elapsed_time(ended) for begun, ended in self.spans) / 1000 / spent
        gpu_busy = min(1.0, busy) if self.spans else None
        return Step(step, loss, lr, norm, tokens / spent, self.waited / spent, gpu_busy)

    def first_bad(self, step: int) -> tuple[int, Place | None]:
        """Where the first number that is none appeared; at the latest in the step given."""
        for found, place, number in self.marks:
            if processes.any_of(not math.isfinite(float(number))):
                return found, place
        return step, None
