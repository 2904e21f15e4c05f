"""The verbs: train, resume, load. Everything the command line does is one of these first."""

import shlex
from pathlib import Path
from typing import Any

from glassformer import processes
from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.runs.asked import Asked, ask, path_of
from glassformer.runs.checksums import REMADE, is_as_written, note_checksums, refuse_changed
from glassformer.runs.creating import create, discard
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.foresight.timing import Clock
from glassformer.runs.holding import held
from glassformer.runs.learning_curve import learning_curve
from glassformer.runs.limits import kept_in, within_limits
from glassformer.runs.pretraining import learn_texts_first
from glassformer.runs.report import baseline_seconds, report_on
from glassformer.runs.run import Run
from glassformer.runs.teaching import teach


def train(job: str, *data: str | Path, quiet: bool = False, **asked: Any) -> Run:
    """Train a model on raw data and return the run: `glassformer.train("classify", "reviews.csv")`.

    Args:
        data: Files, folders or names of the catalog.
        quiet: Whether to say nothing meanwhile.
        asked: Any field of `runs.asked.Asked`: run, valid, test, columns, group, size, steps ...
    """
    return train_as(ask(job, data, **asked), Display(quiet=quiet))


def train_as(
    asked: Asked, display: Display, command: str = "", *, began: float | None = None
) -> Run:
    """Train what a person asked for; what cannot be trained leaves no folder behind.

    Args:
        began: From when on time counts, as `time.monotonic` tells it; None for now.
    """
    settled = asked.settle()
    wanted = settled.train.time
    deadline = None if wanted is None else Clock(wanted, began=began)
    refuse_processes(settled)
    with processes.joined():
        folder = create_together(asked, display, command)
        display.say(f"run folder: {folder.path}")
        try:
            return bring_to_end(folder, display, deadline)
        except GlassformerError:
            newest = [path.read_text() for path in folder.path.rglob("checkpoints/latest")]
            if processes.is_first() and not any(name != "step-0\n" for name in newest):
                discard(folder)  # nothing learned is lost
            raise


def refuse_processes(config: Config) -> None:
    """Some settings need several processes, and some need one."""
    if config.curve and processes.count() > 1:
        raise GlassformerError("--curve trains in one process; leave it or torchrun out")
    if config.train.shard and not processes.is_launched():
        raise GlassformerError(
            "train.shard deals a model out to several processes; start them with "
            "`torchrun --nproc-per-node 2 -m glassformer -- train ...`, or leave it out"
        )


def create_together(asked: Asked, display: Display, command: str) -> RunFolder:
    """A run folder, made by the first of the processes and found by the others."""
    place = ""
    try:
        if processes.is_first():
            place = str(create(asked, display, command).path)
    finally:
        place = processes.told(place)
    if not place:
        raise GlassformerError("the first process could not create the run; it says why")
    if not RunFolder(Path(place)).config_file.exists():
        raise GlassformerError(
            f"{place}: not seen by process {processes.place()}; put the run with --run where all "
            f"machines see it"
        )
    return RunFolder(Path(place))


def resume(path: str | Path, *, quiet: bool = False) -> Run:
    """Go on with a run that was interrupted."""
    folder, display = RunFolder(path_of(path, "a run")), Display(quiet=quiet)
    folder.config()
    folder.intake()  # what is not whole shows before anything is learned
    if folder.is_finished and is_as_written(folder.path, folder.model.name):
        raise GlassformerError(
            f"{path}: is finished; use it with `glassformer predict {shlex.quote(str(path))}`, "
            f"or train another run"
        )
    refuse_changed(folder.path, data=True, but=REMADE)
    with processes.joined():
        return bring_to_end(folder, display)


def bring_to_end(folder: RunFolder, display: Display, deadline: Clock | None = None) -> Run:
    """Learn the texts first where that helps, train, keep the best, and report."""
    wanted = folder.config().train.time
    if wanted is not None:
        deadline = deadline or Clock(wanted)
        deadline.reserve = baseline_seconds(folder)
    try:
        with held(folder.path), kept_in(folder.path), within_limits(folder.path):
            learn_texts_first(folder, display, deadline)
            taught = teach(folder, display, deadline)
            if processes.is_first():
                curve = learning_curve(taught, folder, display) if taught.config.curve else None
                report_on(taught, folder, display, curve=curve)
                note_checksums(folder.path)
    except BaseException as error:
        hint = f"go on with: glassformer resume {shlex.quote(str(folder.path))}"
        if not isinstance(error, Exception):  # a person, or the system, wants it to stop
            display.say(hint)
        if processes.lost_another(error):
            raise GlassformerError(f"another process of this training ended; {hint}") from None
        raise
    return Run(folder.path, device=folder.config().machine.device)


def load(path: str | Path, *, device: str = "auto") -> Run:
    """A trained run, ready to use: `glassformer.load("runs/reviews").predict("What a film")`."""
    return Run(path, device=device)


def align(run: Run, text: str, **options: Any) -> Any:
    """Predict for a text, and say which of its words each word of the answer looked at.

    Args:
        options: More of the predictor's options, such as `prefix`.
    """
    return run.predict(text, align=True, **options).explanation
