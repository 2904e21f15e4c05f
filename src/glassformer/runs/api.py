"""The verbs: train, resume, load. Everything the command line does is one of these first."""

import shlex
import shutil
from pathlib import Path
from typing import Any

from glassformer import processes
from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.files import remove
from glassformer.runs.arguments import in_words, taking, training_arguments
from glassformer.runs.checksums import (
    REMADE,
    forget_checksum,
    is_as_written,
    note_checksums,
    refuse_changed,
)
from glassformer.runs.display import Display
from glassformer.runs.earlier_reading import keep_as_spare
from glassformer.runs.fit import FitResult, costs_in, fit
from glassformer.runs.folder import RunFolder
from glassformer.runs.learning_curve import learning_curve
from glassformer.runs.limits import folder_errors, within_limits
from glassformer.runs.lock import run_lock
from glassformer.runs.new_folder import discard
from glassformer.runs.own_model import OwnModel
from glassformer.runs.prepare import Prepared, prepare
from glassformer.runs.pretraining import pretrain_first
from glassformer.runs.refit import refit
from glassformer.runs.report import final_answers, report_on
from glassformer.runs.request import TrainRequest
from glassformer.runs.run import Run
from glassformer.runs.timing import Budget, TooLittleTimeError, steps_in, too_short
from glassformer.runs.trained import open_folder
from glassformer.training.machine import training_machine
from glassformer.training.weights import write_tensors


@taking(training_arguments)
def train(request: TrainRequest, display: Display) -> Run:
    """Train a model on raw data and return the run: `glassformer.train("classify", "reviews.csv")`.

    Everything but the job and the data is optional.
    """
    return run_training(request, display)


def run_training(
    request: TrainRequest, display: Display, command: str = "", *, started: float | None = None
) -> Run:
    """Run the requested training; a failure before the first checkpoint leaves no folder behind.

    Args:
        started: When the time budget started, by `time.monotonic`; None for now.
    """
    config = request.resolve(provisional=True)
    budget = Budget(config.train.time, started=started)
    refuse_processes(config)
    with processes.joined():
        run = prepare_on_first(request, config, display, command)
        display.say(f"run folder: {run.folder.path}")
        try:
            return complete(run, display, budget)
        except GlassformerError as error:
            short = isinstance(error, TooLittleTimeError)
            if short and processes.is_first() and keep_as_spare(run.folder.path):
                raise TooLittleTimeError(
                    f"{error}; what was read is kept in {run.folder.path} for the next try"
                ) from None
            newest = [path.read_text() for path in run.folder.path.rglob("checkpoints/latest")]
            if processes.is_first() and not any(name != "step-0\n" for name in newest):
                discard(run.folder)  # nothing trained is lost
            raise


def refuse_processes(config: Config) -> None:
    """Some settings need several processes, and some need one."""
    if config.curve and processes.world_size() > 1:
        raise GlassformerError("--curve trains in one process; drop --curve or torchrun")
    if config.train.shard and not processes.is_launched():
        raise GlassformerError(
            "train.shard spreads a model over several processes; start them with "
            "`torchrun --nproc-per-node 2 -m glassformer -- train ...`, or leave it out"
        )


def prepare_on_first(
    request: TrainRequest, config: Config, display: Display, command: str
) -> Prepared:
    """A run folder, created by the first process and opened by the others."""
    place, run = "", None
    try:
        if processes.is_first():
            run = prepare(request, config, display, command)
            place = str(run.folder.path)
    finally:
        place = processes.broadcast(place)
    if run is not None:
        return run
    if not place:
        raise GlassformerError("the first process could not create the run; see its error")
    if not RunFolder(Path(place)).config_file.exists():
        raise GlassformerError(
            f"{place}: not visible to process {processes.rank()}; use --run to name a folder "
            f"that all machines share"
        )
    return Prepared.open(RunFolder(Path(place)))


@in_words
def resume(path: str | Path, *, model: OwnModel | None = None, quiet: bool = False) -> Run:
    """Resume an interrupted run.

    Args:
        model: Your own model, if the run was started with one.
        quiet: Whether to suppress progress output.
    """
    folder, display = open_folder(path, model), Display(quiet=quiet)
    folder.intake()  # damage shows before anything is trained
    if folder.is_finished and is_as_written(folder.path, folder.model.name):
        raise GlassformerError(
            f"{path}: already finished; use it with `glassformer predict "
            f"{shlex.quote(str(path))}`, or train another run"
        )
    refuse_changed(folder.path, data=True, but=REMADE)
    with processes.joined():
        return complete(Prepared.open(folder), display)


def complete(run: Prepared, display: Display, budget: Budget | None = None) -> Run:
    """Pretrain where that helps, train, keep the best model, and report.

    Args:
        budget: Of the command; None for a resumed run, whose steps are known once it has some.
    """
    folder, train = run.folder, run.config.train
    if budget is None:
        budget = Budget(train.time if train.steps is None else None)
    try:
        with run_lock(folder.path), folder_errors(folder.path), within_limits(folder.path):
            refuse_too_little(run, display, budget)
            pretrain_first(run, display, budget)
            result = fit(run, display, budget)
            curve = None
            if result.config.curve:
                curve = learning_curve(result, folder, display, budget)
            if result.config.train.refit:
                result = refit(result, folder, display, budget)
            if processes.is_first():
                folder.report.unlink(missing_ok=True)  # of a model that was damaged
                note_checksums(folder.path)  # first: a run that has a report is finished
            answers = final_answers(result, folder, display)
            if processes.is_first():
                report_on(result, answers, folder, display, curve=curve, budget=budget)
                note_checksums(folder.path)  # of the report
                drop_unneeded(result, folder, display)
    except BaseException as error:
        hint = f"resume with: glassformer resume {shlex.quote(str(folder.path))}"
        if not isinstance(error, Exception):  # Ctrl-C or SIGTERM
            display.say(hint)
        if processes.lost_another(error):
            raise GlassformerError(f"another process of this training run died; {hint}") from None
        raise
    return Run(folder.path, device=result.config.machine.device, model=folder.own_model)


def drop_unneeded(result: FitResult, folder: RunFolder, display: Display) -> None:
    """Remove from a finished run what neither predicts nor resumes.

    Where n-grams alone answer, that is the network, unless a study is to compare networks.
    """
    shutil.rmtree(folder.pretrain.checkpoints, ignore_errors=True)
    if result.task.needs_network or not result.config.baseline:
        return
    forget_checksum(folder.path, folder.model.name)
    write_tensors({}, folder.model)
    for path in (folder.checkpoints, folder.pretrain.path):
        remove(path)
    note_checksums(folder.path)
    display.say("n-grams alone answer, so the network is not kept; --set model.ngrams=no keeps it")


def refuse_too_little(run: Prepared, display: Display, budget: Budget) -> None:
    """Refuse a time budget without time for a step, before anything else is tried."""
    if not budget.limited or run.config.train.steps is not None:
        return
    costs = costs_in(run, training_machine(run.config.machine), display, budget)
    if not int(processes.broadcast(str(steps_in(run.config, costs, budget)))):
        raise too_short(run.config, costs, budget)


@in_words
def load(
    path: str | Path,
    *,
    model: OwnModel | None = None,
    device: str = "auto",
    int8: bool = False,
) -> Run:
    """A trained run, ready to use: `glassformer.load("runs/reviews").predict("What a film")`.

    Args:
        model: Your own model, if the run was trained with one.
        device: auto, cpu, cuda or mps.
        int8: Whether it computes in int8, on a CPU: faster, and a little less exact.
    """
    return Run(path, model=model, device=device, int8=int8)


def align(run: Run, given: Any, **options: Any) -> Any:
    """Predict, and align each word of the answer with what it was made of.

    For a text, these are the words it attended to; for a recording, when it is spoken.

    Args:
        given: An input of the run's predictor.
        options: More of the predictor's options, such as `prefix`.
    """
    return run.predict(given, align=True, **options).explanation
