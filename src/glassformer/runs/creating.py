"""From raw data to a run folder that is ready to train.

All of it happens under a temporary name beside the folder, which appears when it is whole: bad
input, an error or a kill leaves nothing half-written.
"""

import math
import os
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from secrets import token_hex
from typing import Any

from glassformer.config.run import Config
from glassformer.data.doctor.examination import examine_samples
from glassformer.data.ingest import ingest
from glassformer.data.samples import Samples
from glassformer.data.splitter import IngestReport
from glassformer.errors import GlassformerError
from glassformer.files import write_json, write_text
from glassformer.runs.asked import Asked
from glassformer.runs.back_translation import WriteBack, add_back_translations, written_back
from glassformer.runs.checksums import note_checksums
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.runs.foresight.sizing import refuse_too_large
from glassformer.runs.limits import within_limits
from glassformer.runs.parts import begin_from, fresh_model, refuse_untrained
from glassformer.tasks import JOBS
from glassformer.tasks.job import JobTask
from glassformer.training.feeding import one_epoch
from glassformer.training.machine import choose_machine
from glassformer.training.plan import FEWEST_STEPS, Plan
from glassformer.training.state import freeze
from glassformer.training.weights import weights_of, write_tensors

HOME = Path("runs")
LEFT_BEHIND = r"\..+\.new-[0-9a-f]{8}-(?P<process>\d+)"  # temporary names, as made below


def create(
    asked: Asked, display: Display, command: str = "", write_back: WriteBack = written_back
) -> RunFolder:
    """A folder with samples, tokens and settled settings, ready to train.

    Args:
        write_back: Who writes the sources of back-translations, where there are some.
    """
    config = asked.settle()
    machine = choose_machine(config.machine, trial=True)
    target = asked.run or free_name(asked.data[0] if asked.data else asked.job)
    refuse_taken(target)
    if asked.origin is not None:
        refuse_untrained(RunFolder(asked.origin))
    with within_limits(target), under_temporary_name(target) as path:
        folder = RunFolder(path)
        with display.counting("reading rows") as seen:
            samples, taken = ingest(
                config.data, JOBS[config.job].schema, folder.data, seed=config.seed, seen=seen
            )
        told(taken, display)
        refuse_curve(config, taken)
        look_at(samples, config, display)
        samples, added = add_back_translations(config, samples, taken, display, write_back)
        write_json(asdict(taken) | {"back_translated": added}, path / "intake.json")
        with display.waiting("learning tokens"):
            config = JOBS[config.job].task.learn(config, samples, path, asked.origin)
            folder.job(config, None).index(samples, folder.data)
        job = folder.job(config, folder.data)
        for remark in reporter_of(job).remarks():
            display.say(remark)
        config = settle_steps(config, job)
        refuse_too_large(config, machine, lambda smaller: folder.job(smaller, None))
        model = fresh_model(job, config.seed)
        freeze(model, config.train.freeze)  # a mistake in it shows before anything is kept
        if asked.origin is not None:
            parts = begin_from(model, RunFolder(asked.origin), asked.part)
            write_tensors(weights_of(model), folder.initial)
            display.say(f"begins with {', '.join(parts)} of {asked.origin}")
        write_text((command or asked.command()) + "\n", path / "command.txt")
        note_checksums(path)  # not of the settings: what is open is settled while it trains
        folder.write_config(config)
    return RunFolder(target)


def settle_steps(config: Config, job: JobTask[Any, Any, Any]) -> Config:
    """How long, as a number of steps, written down; few rows are seen often when nobody says."""
    train = config.train
    if train.steps is not None or train.time is not None:
        return config
    plan = Plan(train, config.data, choose_machine(config.machine), config.seed)
    epochs, fewest = (train.epochs, 1) if train.epochs else (job.usual_epochs, FEWEST_STEPS)
    batches = len(one_epoch(job, plan, 0))
    steps = max(fewest, math.ceil(epochs * batches / train.accumulate))
    return replace(config, train=replace(train, steps=steps))


def told(taken: IngestReport, display: Display) -> None:
    """Say what came in, and what was left out."""
    columns = ", ".join(f"{role} = {column!r}" for role, column in taken.columns.items())
    parts = ", ".join(f"{count:,} {part}" for part, count in taken.counts.items())
    display.say(f"columns: {columns}")
    for file, others in taken.others.items():
        columns = ", ".join(f"{role} = {column!r}" for role, column in others.items())
        display.say(f"columns of {file}: {columns}")
    display.say(f"rows: {parts}")
    for reason, skipped in taken.skipped.items():
        display.say(f"left out: {skipped.count:,} rows with {reason}, first {skipped.first}")


def refuse_curve(config: Config, taken: IngestReport) -> None:
    """A learning curve needs rows to score on, which shows before anything is learned."""
    if config.curve and not taken.counts.get("valid"):
        raise GlassformerError(
            "--curve has no validation rows to score on; give some with --valid or "
            "--set data.valid_share=0.1, or leave --curve out"
        )


def look_at(samples: Samples, config: Config, display: Display) -> None:
    """Say what a doctor finds in the data that training would stumble over."""
    schema = JOBS[config.job].schema
    found = examine_samples(samples, schema, config.data, schema.checks(config))
    for finding in found.alarms:
        display.say(finding.line)
    if found.seen < found.total:
        seen = f"{found.seen:,} of {found.total:,} rows"
        display.say(f"looked at {seen}; for all of them: glassformer doctor")


def free_name(data: str) -> Path:
    """A folder under runs/ named after the data that is not there yet."""
    stem = re.sub(r"[^\w-]+", "-", Path(data).name.split(".")[0]).strip("-") or "run"
    numbers = ["", *(f"-{n}" for n in range(2, 10_000))]
    return next(HOME / (stem + n) for n in numbers if not (HOME / (stem + n)).exists())


def refuse_taken(target: Path) -> None:
    """A folder with something in it is not written over, nor the one we stand in."""
    try:
        if target.absolute() == Path.cwd():
            raise GlassformerError(
                f"{target}: is where you are; name a folder inside it with --run"
            )
        taken = target.exists() and not (target.is_dir() and not any(target.iterdir()))
    except OSError as error:
        raise cannot_be_made(target, error) from None
    if taken or target.is_symlink():
        folder = RunFolder(target)
        begun = folder.config_file.exists() and not folder.is_finished
        resume = f"go on with `glassformer resume {shlex.quote(str(target))}`, or "
        hint = f"{resume if begun else ''}name another with --run"
        raise GlassformerError(f"{target}: already exists; {hint}")


@contextmanager
def under_temporary_name(target: Path) -> Iterator[Path]:
    """A folder that becomes `target` when all goes well, and vanishes otherwise.

    Its name ends in the number of this process, by which a leftover is known.
    """
    temporary = target.parent / f".{target.name}.new-{token_hex(4)}-{os.getpid()}"
    missing = [folder for folder in target.parents if not folder.exists()]
    try:
        temporary.mkdir(parents=True)
    except OSError as error:
        remove_empty(missing)
        raise cannot_be_made(target, error) from None
    try:
        yield temporary
        try:
            if target.is_dir():
                target.rmdir()  # empty, as was seen before
            temporary.rename(target)
        except OSError as error:
            raise cannot_be_made(target, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        remove_empty(missing)


def discard(folder: RunFolder) -> None:
    """Remove a run, and the folder of runs around it if nothing else is there."""
    shutil.rmtree(folder.path, ignore_errors=True)  # it may be gone, and that is why
    if folder.path.parent == HOME:
        remove_empty([HOME])


def remove_empty(folders: list[Path]) -> None:
    """Remove folders, innermost first, as far as nothing is in them."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def cannot_be_made(target: Path, error: OSError) -> GlassformerError:
    """The words for a place that cannot be written to."""
    return GlassformerError(
        f"{target}: cannot be made ({error.strerror}); choose another place with --run"
    )
