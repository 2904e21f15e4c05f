"""From raw data to a run folder that is ready to train.

All of it happens under a temporary name beside the folder, which appears when it is whole: bad
input, an error or a kill leaves nothing half-written.
"""

import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import torch

from glassformer.config.run import Config
from glassformer.data.intake import Taken, take_in
from glassformer.errors import GlassformerError
from glassformer.runs.asked import Asked
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.parts import begin_from
from glassformer.tasks import JOBS
from glassformer.tasks.base import Task
from glassformer.training.feeding import one_epoch
from glassformer.training.machine import choose_machine
from glassformer.training.plan import Plan
from glassformer.training.weights import weights_of, write_json, write_tensors

HOME = Path("runs")


def create(asked: Asked, display: Display) -> RunFolder:
    """A folder with samples, tokens and settled settings, ready to train."""
    config = asked.settle()
    target = asked.run or free_name(asked.data[0] if asked.data else asked.job)
    refuse_taken(target)
    with under_temporary_name(target) as path:
        folder = RunFolder(path)
        with display.counting("reading rows") as seen:
            samples, taken = take_in(
                config.data, JOBS[config.job].roles, folder.data, seed=config.seed, seen=seen
            )
        write_json(asdict(taken), path / "intake.json")
        told(taken, display)
        with display.waiting("learning tokens"):
            config = JOBS[config.job].learn(config, samples, path, asked.origin)
            folder.job(config, None).index(samples, folder.data)
        job = folder.job(config, folder.data)
        config = settle_steps(config, job)
        if asked.pretrain and asked.origin is None and config.job == "classify":
            config = replace(config, pretrain="auto" if config.pretrain == "no" else "yes")
        if asked.origin is not None:
            torch.manual_seed(config.seed)
            model = job.model()
            parts = begin_from(model, RunFolder(asked.origin), asked.part)
            write_tensors(weights_of(model), folder.initial)
            display.say(f"begins with {', '.join(parts)} of {asked.origin}")
        folder.write_config(config)
    return RunFolder(target)


def settle_steps(config: Config, task: Task) -> Config:
    """Epochs as a number of steps, written down."""
    train = config.train
    if train.steps is not None or train.time is not None:
        return config
    plan = Plan(train, config.data, choose_machine(config.machine), config.seed)
    batches = len(one_epoch(task, plan, 0))
    steps = max(1, math.ceil((train.epochs or 1.0) * batches / train.accumulate))
    return replace(config, train=replace(train, steps=steps))


def told(taken: Taken, display: Display) -> None:
    """Say what came in, and what was left out."""
    columns = ", ".join(f"{role} = {column!r}" for role, column in taken.columns.items())
    parts = ", ".join(f"{count:,} {part}" for part, count in sorted(taken.counts.items()))
    display.say(f"columns: {columns}")
    display.say(f"rows: {parts}")
    for reason, skipped in taken.skipped.items():
        display.say(f"left out: {skipped.count:,} rows with {reason}, first {skipped.first}")


def free_name(data: str) -> Path:
    """A folder under runs/ named after the data that is not there yet."""
    stem = re.sub(r"[^\w-]+", "-", Path(data).name.split(".")[0]).strip("-") or "run"
    numbers = ["", *(f"-{n}" for n in range(2, 10_000))]
    return next(HOME / (stem + n) for n in numbers if not (HOME / (stem + n)).exists())


def refuse_taken(target: Path) -> None:
    """A folder with something in it is not written over."""
    if target.is_file() or (target.is_dir() and any(target.iterdir())):
        hint = (
            f"go on with `glassformer resume {target}`, or name another with --run"
            if (target / "config.toml").exists()
            else "name another with --run"
        )
        raise GlassformerError(f"{target}: already exists; {hint}")


@contextmanager
def under_temporary_name(target: Path) -> Iterator[Path]:
    """A folder that becomes `target` when all goes well, and vanishes otherwise."""
    temporary = target.parent / f".{target.name}.new-{os.getpid()}"
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        raise GlassformerError(
            f"{target}: cannot be made ({error.strerror}); choose another place with --run"
        ) from None
    try:
        yield temporary
        if target.is_dir():
            target.rmdir()  # empty, as was seen before
        temporary.rename(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
