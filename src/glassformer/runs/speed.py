"""The speed of a training: tokens per second, time spent waiting, and GPU utilisation."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

import torch

from glassformer import processes
from glassformer.tasks.job import AnyTask
from glassformer.training.captured import preserving_buffers
from glassformer.training.cost import batch_cost
from glassformer.training.loader import one_epoch
from glassformer.training.setup import Event, Step, TrainSetup
from glassformer.training.state import State

MATRIX_DIM, PRODUCTS = 8192, 20  # of the matrix products that measure the peak
WARM_UP = 2  # reports before the speed is steady


@dataclass(slots=True)
class SpeedMeter:
    """Collects the reported steps of a training."""

    steps: list[Step] = field(default_factory=list)

    def follow(self, events: Iterator[Event]) -> Iterator[Event]:
        """Pass the events through and record the steps."""
        for event in events:
            if isinstance(event, Step):
                self.steps.append(event)
            yield event

    def line(self, state: State, task: AnyTask, setup: TrainSetup) -> str | None:
        """A summary of the speed after the warm-up; None if the training was too short."""
        steady = self.steps[WARM_UP:]
        if not steady:
            return None
        speed = median(step.tokens_per_second for step in steady)
        parts = [f"{speed:,.0f} tokens/s"]
        parts.append(f"waiting for data {median(step.data_wait for step in steady):.1%}")
        busy = [step.gpu_busy for step in steady if step.gpu_busy is not None]
        if busy and not processes.is_joined():
            parts.append(f"GPU busy {median(busy):.0%}")
            parts.append(f"{share_of_peak(speed, state, task, setup):.0%} of its peak")
        return ", ".join(parts)


def share_of_peak(speed: float, state: State, task: AnyTask, setup: TrainSetup) -> float:
    """The model FLOPs utilisation (MFU): its FLOPs per second relative to the GPU's peak."""
    rows = one_epoch(task, setup, 0)[0]
    rows = rows[: math.ceil(len(rows) / state.progress.micro_batches)]  # more may not fit
    batch = task.batch("train", rows, 0).to(setup.machine.device)
    with preserving_buffers(state.model):
        cost = batch_cost(state.model, task, batch, setup)
    return speed * cost.flops / cost.tokens / peak_flops(setup.machine.device)


def peak_flops(device: torch.device) -> float:
    """The measured FLOPs per second of large matrix products in bf16."""
    x = torch.randn(MATRIX_DIM, MATRIX_DIM, device=device, dtype=torch.bfloat16)
    x @ x
    torch.cuda.synchronize(device)
    started = time.perf_counter()
    for _ in range(PRODUCTS):
        x @ x
    torch.cuda.synchronize(device)
    return PRODUCTS * 2 * MATRIX_DIM**3 / (time.perf_counter() - started)
