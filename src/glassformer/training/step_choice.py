"""Choose how a run executes its steps: eagerly, as CUDA graphs, or compiled and as CUDA graphs."""

import os
import time

from torch import nn

from glassformer import processes
from glassformer.errors import is_out_of_memory
from glassformer.files import cache_folder
from glassformer.tasks.task import Task
from glassformer.training.captured import CapturedStep, Compiled
from glassformer.training.compiled import compile_blocks
from glassformer.training.loader import Shape, common_shape, first_fitting
from glassformer.training.progress import Progress
from glassformer.training.setup import Note, TrainSetup
from glassformer.training.step import EagerStep

COMPILER_CACHE = "TORCHINDUCTOR_CACHE_DIR"
COMPILE_SECONDS = 20.0  # with a cold compiler cache
COMPILE_GAIN = 0.3  # share of a captured step's time that compiling saves
LONG = 600.0  # seconds of such steps from where whole stacks are compiled rather than blocks


def choose_step(
    model: nn.Module, task: Task, setup: TrainSetup, progress: Progress
) -> tuple[EagerStep, Note | None]:
    """The fastest way to run the remaining steps, and a note if there was a choice."""
    wanted, device = setup.machine.compile, setup.machine.device.type
    if wanted is False or (device != "cuda" and not wanted):
        return EagerStep(model, task, setup), None
    set_compiler_cache()
    if device != "cuda":
        compile_blocks(model, dynamic=True)
        return EagerStep(model, task, setup), None
    reason = reason_to_stay_eager(model, setup)
    shape = None if reason else common_shape(task, setup, progress.micro_batches)
    if shape is None:
        reason = reason or "batches of this job differ in shape"
        return EagerStep(model, task, setup), Note(
            progress.step, f"steps run eagerly, not as CUDA graphs: {reason}"
        )
    return captured_step(model, task, setup, progress, shape)


def captured_step(
    model: nn.Module, task: Task, setup: TrainSetup, progress: Progress, shape: Shape
) -> tuple[EagerStep, Note | None]:
    """A captured step, compiled if that is requested or pays; on failure the next simpler one."""
    first = first_fitting(task, setup, progress.micro_batches, shape).batch
    failure = ""

    def attempt(compiled: Compiled | None) -> CapturedStep | None:
        nonlocal failure
        try:
            return CapturedStep(model, task, setup, shape=shape, first=first, compiled=compiled)
        except Exception as error:
            model.zero_grad(set_to_none=True)
            failure = "out of memory" if is_out_of_memory(error) else first_line(error)
        return None

    def eager() -> tuple[EagerStep, Note]:
        text = f"steps run eagerly, as capturing them failed: {failure}"
        return EagerStep(model, task, setup), Note(progress.step, text)

    started = time.perf_counter()
    step = attempt(None)
    if step is None:
        return eager()
    ahead = step.seconds() * remaining_batches(setup, progress)
    if setup.machine.compile is None and not compiling_pays(ahead, setup):
        return step, Note(progress.step, "steps run as CUDA graphs")
    del step  # frees its memory
    whole = ahead > LONG and not setup.machine.deterministic
    if (step := attempt("stacks" if whole else "blocks")) is not None:
        took = f"ready after {time.perf_counter() - started:.0f}s"
        return step, Note(progress.step, f"steps are compiled and run as CUDA graphs, {took}")
    text = f"steps run as CUDA graphs without compiling, which failed: {failure}"
    step = attempt(None)
    return eager() if step is None else (step, Note(progress.step, text))


def remaining_batches(setup: TrainSetup, progress: Progress) -> int:
    """Micro-batches until the end of training."""
    return setup.train.accumulate * progress.micro_batches * (setup.steps - progress.step)


def compiling_pays(ahead: float, setup: TrainSetup) -> bool:
    """Whether compiling saves more than it takes of the seconds ahead."""
    if setup.machine.deterministic:  # must not depend on the speed of the machine
        return False
    return COMPILE_GAIN * ahead > COMPILE_SECONDS


def reason_to_stay_eager(model: nn.Module, setup: TrainSetup) -> str | None:
    """Why the steps of this run cannot be captured, or None if they can."""
    if processes.is_joined():
        return "several processes train together"
    if setup.train.recompute:
        return "train.recompute is on"
    if any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()):
        return "the model has hooks"
    return None


def set_compiler_cache() -> None:
    """Cache compiled kernels in our cache folder, unless another one is configured."""
    from torch._inductor.runtime.cache_dir_utils import default_cache_dir

    if os.environ.get(COMPILER_CACHE, default_cache_dir()) == default_cache_dir():
        os.environ[COMPILER_CACHE] = str(cache_folder() / "compiled")


def first_line(error: Exception) -> str:
    """The first line of an error message, or the name of its type."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
