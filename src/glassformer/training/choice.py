"""How the steps of a run are made: kernel by kernel, recorded as CUDA graphs, or compiled, too."""

import os
import time

from torch import nn

from glassformer import processes
from glassformer.errors import is_out_of_memory
from glassformer.files import cache_folder
from glassformer.tasks.task import Task
from glassformer.training.captured import CapturedStep
from glassformer.training.compiled import compile_blocks
from glassformer.training.loader import Shape, common_shape, first_piece
from glassformer.training.progress import Progress
from glassformer.training.setup import Note, TrainSetup
from glassformer.training.step import EagerStep

COMPILER_CACHE = "TORCHINDUCTOR_CACHE_DIR"
COMPILING = 25.0  # seconds, where the compiler has nothing in its cache
GAIN = 0.3  # share of a recorded step that compiling saves


def choose_step(
    model: nn.Module, task: Task, setup: TrainSetup, progress: Progress
) -> tuple[EagerStep, Note | None]:
    """The fastest way to make the steps left, and a note where there was a choice."""
    wanted, device = setup.machine.compile, setup.machine.device.type
    if wanted is False or (device != "cuda" and not wanted):
        return EagerStep(model, task, setup), None
    keep_compilations()
    if device != "cuda":
        compile_blocks(model, dynamic=True)
        return EagerStep(model, task, setup), None
    found = reason_against(model, setup)
    shape = None if found else common_shape(task, setup, progress.micro_batches)
    if shape is None:
        found = found or "batches of this job differ in shape"
        return EagerStep(model, task, setup), Note(
            progress.step, f"steps run kernel by kernel, not as CUDA graphs: {found}"
        )
    return captured_step(model, task, setup, progress, shape)


def captured_step(
    model: nn.Module, task: Task, setup: TrainSetup, progress: Progress, shape: Shape
) -> tuple[EagerStep, Note | None]:
    """A step recorded, and compiled where that is wanted or pays; what fails is done without."""
    first = first_piece(task, setup, progress.micro_batches, shape).batch
    failure = ""

    def attempt(*, compiled: bool) -> CapturedStep | None:
        nonlocal failure
        try:
            return CapturedStep(model, task, setup, shape=shape, first=first, compiled=compiled)
        except Exception as error:
            model.zero_grad(set_to_none=True)
            failure = "out of memory" if is_out_of_memory(error) else first_line(error)
        return None

    started, step = time.perf_counter(), None
    if setup.machine.compile is None:
        step = attempt(compiled=False)
        if step is not None and not compiling_pays(step, setup, progress):
            return step, Note(progress.step, "steps run as CUDA graphs")
    if not failure:
        step = None  # gives its memory back
        step = attempt(compiled=True)
    if step is not None:
        took = f"ready after {time.perf_counter() - started:.0f}s"
        return step, Note(progress.step, f"steps are compiled and run as CUDA graphs, {took}")
    reason, step = failure, attempt(compiled=False) if setup.machine.compile else None
    if step is None:
        return EagerStep(model, task, setup), Note(
            progress.step, f"steps run kernel by kernel, as recording them failed: {reason}"
        )
    return step, Note(
        progress.step, f"steps run as CUDA graphs, but not compiled, as that failed: {reason}"
    )


def compiling_pays(step: CapturedStep, setup: TrainSetup, progress: Progress) -> bool:
    """Whether the steps left save more time than compiling takes."""
    if setup.machine.deterministic:  # which must not depend on how fast a machine happens to be
        return False
    pieces = setup.train.accumulate * progress.micro_batches * (setup.steps - progress.step)
    return GAIN * pieces * step.seconds() > COMPILING


def reason_against(model: nn.Module, setup: TrainSetup) -> str | None:
    """Why steps of this run cannot be recorded, if they cannot."""
    if processes.is_joined():
        return "several processes train together"
    if setup.train.recompute:
        return "train.recompute is on"
    if any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()):
        return "the model has hooks"
    return None


def keep_compilations() -> None:
    """Let the compiler keep what it made in our cache, unless it was told another place."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    if os.environ.get(COMPILER_CACHE, default_cache_dir()) == default_cache_dir():
        os.environ[COMPILER_CACHE] = str(cache_folder() / "compiled")


def first_line(error: Exception) -> str:
    """What went wrong, briefly."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
