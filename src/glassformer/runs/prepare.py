"""From raw data to a run folder that is ready to train."""

import math
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from torch import nn

from glassformer.config.run import Config
from glassformer.data.columns import columns_line, runner_up_lines
from glassformer.data.doctor.examination import examine_samples
from glassformer.data.ingest import ingest
from glassformer.data.samples import Samples
from glassformer.data.splitter import IngestReport, related_lines
from glassformer.errors import GlassformerError
from glassformer.files import write_json, write_text
from glassformer.runs.arguments import command_of
from glassformer.runs.checksums import note_checksums
from glassformer.runs.display import Display
from glassformer.runs.earlier_reading import (
    Reading,
    earlier_reading,
    is_spare,
    note_reading,
    take_over,
)
from glassformer.runs.first_stage import add_unlabelled
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.runs.guessing import likelier_job, other_job
from glassformer.runs.limits import within_limits
from glassformer.runs.model_size import refuse_too_large
from glassformer.runs.new_folder import free_name, refuse_existing, under_temporary_name
from glassformer.runs.own_model import builder_of, try_out
from glassformer.runs.request import TrainRequest
from glassformer.runs.trained import open_companion
from glassformer.runs.warm_start import fresh_model, refuse_untrained, start_from
from glassformer.tasks import JOBS
from glassformer.tasks.extension import Extended
from glassformer.tasks.job import AnyTask
from glassformer.training.loader import one_epoch
from glassformer.training.machine import choose_machine
from glassformer.training.setup import FEWEST_STEPS, VALIDATIONS, TrainSetup
from glassformer.training.state import freeze
from glassformer.training.weights import load_weights, read_tensors, weights_of, write_tensors
from glassformer.wording import counted

VALIDATION_SHARE = 0.1  # of the training time
FEWEST_ROWS, FEWEST_VALIDATIONS = 200, 2  # for scores that mean something


@dataclass(slots=True)
class Prepared:
    """A folder with samples and resolved settings, the opened task, and the model at step 0."""

    folder: RunFolder
    config: Config
    task: AnyTask
    model: nn.Module

    @classmethod
    def open(cls, folder: RunFolder) -> "Prepared":
        """The run in a folder."""
        config = folder.config()
        task = folder.open_task(config, folder.data)
        return cls(folder, config, task, initial_model(task, config, folder))


def initial_model(task: AnyTask, config: Config, folder: RunFolder) -> nn.Module:
    """The model before its first step: freshly initialised, or with weights of another run."""
    model = fresh_model(task, config.seed)
    put_initial(model, folder)
    return model


def put_initial(model: nn.Module, folder: RunFolder) -> None:
    """Load the initial weights that came from another run, if any."""
    if folder.initial.exists():
        load_weights(model, read_tensors(folder.initial), str(folder.initial))


def prepare(
    request: TrainRequest,
    config: Config,
    display: Display,
    command: str = "",
    *,
    extends: bool = True,
    suits: bool = True,
) -> Prepared:
    """Create a run folder with samples, tokens and resolved settings.

    Args:
        config: The resolved request.
        command: The command typed, if not `glassformer train`.
        extends: Whether samples are added with the help of other runs, if the settings say so.
        suits: Whether the job may choose other defaults, which suit the samples.
    """
    machine = choose_machine(config.machine, trial=True)
    target = request.run or free_name(request.name)
    own_model = None if request.model is None else builder_of(request.model)
    refuse_existing(target)
    if request.origin is not None:
        refuse_untrained(RunFolder(request.origin))
    with within_limits(target), under_temporary_name(target) as path:
        folder = RunFolder(path, own_model=own_model)
        asked, earlier = config, None
        if extends and suits and not companions_of(config):
            earlier = earlier_reading(asked, target.parent)
        if earlier is not None:
            config = reread(request, earlier, path, display)
        else:
            samples = read_samples(config, folder, display, extends)
            if suits:
                config = request.resolve(samples)
            with display.waiting("preparing samples"):
                config = JOBS[config.job].task.prepare(config, samples, path, request.origin)
                folder.open_task(config, None).index(samples, folder.data)
            if config.data.unlabelled:
                add_unlabelled(config, samples, folder, display)
            if suits and not companions_of(config):
                note_reading(asked, config, samples, folder)
        task = folder.open_task(config, folder.data)
        for remark in reporter_of(task).remarks():
            display.say(remark)
        config = resolve_validation(resolve_steps(config, task), task)
        if (line := validation_line(config, task)) is not None:
            display.say(line)
        if own_model is None:
            refuse_too_large(config, machine, lambda smaller: folder.open_task(smaller, None))
        model = fresh_model(task, config.seed)
        if own_model is not None:
            try_out(task, model)
            write_tensors(weights_of(model), folder.initial)  # another copy may begin elsewhere
        freeze(model, config.train.freeze)  # a mistake in it shows before the folder is created
        with display.waiting("preparing the model"):
            sentence = None if own_model is not None else task.start(model)
        if sentence is not None:
            write_tensors(weights_of(model), folder.initial)
            display.say(sentence)
        if request.origin is not None:
            modules = start_from(model, RunFolder(request.origin), request.module)
            write_tensors(weights_of(model), folder.initial)
            display.say(f"starting from {', '.join(modules)} of {request.origin}")
        write_text((command or command_of(request)) + "\n", path / "command.txt")
        note_checksums(path)  # not of config.toml: training resolves open settings
        folder.write_config(config)
        if is_spare(target):
            shutil.rmtree(target)
    task.config, task.folder = config, target
    return Prepared(replace(folder, path=target), config, task, model)


def reread(
    request: TrainRequest, earlier: tuple[RunFolder, Reading], path: Path, display: Display
) -> Config:
    """Take over what an earlier try has read, and return the settings for it."""
    source, reading = earlier
    take_over(source, reading, path)
    folder = RunFolder(path)
    config = reading.config(request.resolve(Samples.open(folder.data)))
    counts = folder.intake()["counts"]
    splits = ", ".join(f"{count:,} {split}" for split, count in counts.items())
    display.say(f"rows: {splits}, as {source.path} has read them: no file has changed since")
    refuse_curve(config, counts)
    return config


def read_samples(config: Config, folder: RunFolder, display: Display, extends: bool) -> Samples:
    """Read the raw data into the folder, examine them, and extend them if requested."""
    try:
        with display.counting("reading rows") as seen:
            samples, report = ingest(
                config.data, JOBS[config.job].schema, folder.data, seed=config.seed, seen=seen
            )
    except GlassformerError as error:
        fitting = other_job if "no column for" in str(error) else likelier_job
        if "no job " in str(error) or (job := fitting(config.data, config.job)) is None:
            raise
        raise GlassformerError(f"{error}; they look like data for {job}") from None
    show_ingest(report, display)
    if (job := likelier_job(config.data, config.job)) is not None:
        display.say(f"these look like data for {job} rather than {config.job}")
    refuse_curve(config, report.counts)
    examine_briefly(samples, config, display)
    added: list[str] = []
    if extends and (extended := extend(config, samples, display)):
        samples, added = extended.samples, extended.sentences
        report.counts["train"] += extended.rows
        for sentence in added:
            display.say(sentence)
    write_json(asdict(report) | {"added": added}, folder.path / "intake.json")
    return samples


def extend(config: Config, samples: Samples, display: Display) -> Extended | None:
    """Extra training samples, made with the help of other runs, if the settings request them."""
    extension, paths = JOBS[config.job].extension, companions_of(config)
    if extension is None or not paths:
        return None
    device = config.machine.device
    companions = {name: open_companion(path, device) for name, path in paths.items()}
    with display.counting("rows added") as seen:
        return extension.extend(config, samples, companions, seen)


def companions_of(config: Config) -> Mapping[str, str]:
    """The other runs that make training samples for this one, name to path."""
    extension = JOBS[config.job].extension
    return extension.companions(config) if extension else {}


def resolve_steps(config: Config, task: AnyTask) -> Config:
    """The length of training as a number of steps; small data get more epochs by default."""
    train = config.train
    if train.steps or train.time or train.flops:
        return config
    setup = TrainSetup(train, config.data, choose_machine(config.machine), config.seed)
    epochs, fewest = (train.epochs, 1) if train.epochs else (task.default_epochs, FEWEST_STEPS)
    batches = len(one_epoch(task, setup, 0))
    steps = max(fewest, math.ceil(epochs * batches / train.accumulate))
    return replace(config, train=replace(train, steps=steps))


def show_ingest(report: IngestReport, display: Display) -> None:
    """Show what was read, and what was skipped."""
    for folder, table in report.tables.items():
        display.say(f"{folder}: recordings without answers; reading its table {table}")
    header = next(iter(report.headers.values()), None)
    splits = ", ".join(f"{count:,} {split}" for split, count in report.counts.items())
    display.say(f"columns: {columns_line(report.columns, header, report.unread)}")
    for line in runner_up_lines(report.columns, report.runners_up):
        display.say(line)
    for file, others in report.others.items():
        display.say(f"columns of {file}: {columns_line(others, report.headers.get(file))}")
    for file, own in report.headers.items():
        if own is not header and file not in report.others:
            display.say(f"{file}: header: {'yes' if own else 'no'}")
    display.say(f"rows: {splits}")
    for line in (*report.together, *related_lines(report.related, report.counts)):
        display.say(line)
    for reason, skipped in report.skipped.items():
        rows = counted(skipped.count, "row")
        display.say(f"left out: {rows} with {reason}, first {skipped.first}")
    for what, lost in report.lost.items():
        display.say(f"{counted(lost.count, 'row')} with {what}, first {lost.first}")


def refuse_curve(config: Config, counts: Mapping[str, int]) -> None:
    """Refuse a learning curve without validation rows before training."""
    if config.curve and not counts.get("valid"):
        raise GlassformerError(
            "--curve needs validation rows; give some with --valid or "
            "--set data.valid_share=0.1, or drop --curve"
        )


def examine_briefly(samples: Samples, config: Config, display: Display) -> None:
    """Show problems in the data that would harm training."""
    schema = JOBS[config.job].schema
    found = examine_samples(samples, schema, config.data, schema.checks(config))
    for finding in found.alarms:
        display.say(finding.line)
    if found.seen < found.total:
        seen = f"{found.seen:,} of {found.total:,} rows"
        display.say(f"examined {seen}; to examine all: glassformer doctor")


def resolve_validation(config: Config, task: AnyTask) -> Config:
    """The settings, with validations that fit their share of the time unless they are set.

    Their cost is estimated in training tokens, not measured, so that a run is the same everywhere.
    """
    train, lengths = config.train, task.lengths("valid")
    if train.steps is None or train.validate_every is not None or len(lengths) <= FEWEST_ROWS:
        return config
    batch = min(config.data.batch_tokens, int(task.lengths("train").sum()))
    trained_tokens = train.steps * train.accumulate * batch
    row_cost = task.scoring_work * float(lengths.mean())  # in training tokens
    rows = train.validate_rows or len(lengths)
    affordable = VALIDATION_SHARE * trained_tokens / row_cost  # rows, over all validations
    if train.validate_rows is None:
        rows = min(rows, max(FEWEST_ROWS, int(affordable / VALIDATIONS)))
    times = min(VALIDATIONS, max(FEWEST_VALIDATIONS, int(affordable / rows)))
    if times < VALIDATIONS:
        train = replace(train, validate_every=-(-train.steps // times))
    if rows < len(lengths):
        train = replace(train, validate_rows=rows)
    return replace(config, train=train)


def validation_line(config: Config, task: AnyTask) -> str | None:
    """A message that validation uses a sample; None if it uses all rows."""
    rows, sampled = len(task.lengths("valid")), config.train.validate_rows
    if sampled is None or sampled >= rows:
        return None
    return (
        f"validating on a sample of {sampled:,} of {rows:,} rows; to use all of them, "
        f"--set train.validate_rows={rows}"
    )
