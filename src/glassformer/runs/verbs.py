"""The verbs: train, resume, load. Everything the command line does is one of these first."""

from pathlib import Path
from typing import Any

from glassformer.errors import GlassformerError
from glassformer.runs.asked import Asked
from glassformer.runs.creating import create
from glassformer.runs.curve import learning_curve
from glassformer.runs.display import Display
from glassformer.runs.folder import RunFolder
from glassformer.runs.pretraining import learn_texts_first
from glassformer.runs.reporting import baseline_seconds, report_on
from glassformer.runs.run import Run
from glassformer.runs.teaching import teach
from glassformer.runs.timing import Clock


def train(job: str, *data: str | Path, quiet: bool = False, **asked: Any) -> Run:
    """Train a model on raw data and return the run: `glassformer.train("classify", "reviews.csv")`.

    Args:
        data: Files, folders or names of the catalog.
        quiet: Whether to say nothing meanwhile.
        asked: Any field of `runs.asked.Asked`: run, valid, test, columns, group, size, steps ...
    """
    for name in ("run", "config", "origin"):
        if asked.get(name) is not None:
            asked[name] = Path(asked[name])
    for name in ("valid", "test"):
        given = asked.get(name, ())
        asked[name] = (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))
    return train_as(Asked(job=job, data=tuple(map(str, data)), **asked), Display(quiet=quiet))


def train_as(asked: Asked, display: Display, command: str = "") -> Run:
    """Train what a person asked for."""
    wanted = asked.settle().train.time
    deadline = None if wanted is None else Clock(wanted)
    folder = create(asked, display)
    display.say(f"run folder: {folder.path}")
    return bring_to_end(folder, display, deadline, command)


def resume(path: str | Path, *, quiet: bool = False) -> Run:
    """Go on with a run that was interrupted."""
    folder, display = RunFolder(Path(path)), Display(quiet=quiet)
    folder.config()
    if folder.report.exists():
        raise GlassformerError(
            f"{path}: is finished; use it with `glassformer predict {path}`, or train another run"
        )
    return bring_to_end(folder, display)


def bring_to_end(
    folder: RunFolder, display: Display, deadline: Clock | None = None, command: str = ""
) -> Run:
    """Learn the texts first where that helps, train, keep the best, and report."""
    wanted = folder.config().train.time
    if wanted is not None:
        deadline = deadline or Clock(wanted)
        deadline.reserve = baseline_seconds(folder)
    try:
        learn_texts_first(folder, display, deadline)
        taught = teach(folder, display, deadline)
        curve = learning_curve(taught, folder, display) if taught.config.curve else None
        report_on(taught, folder, display, curve=curve, command=command)
    except BaseException as error:
        if not isinstance(error, Exception):  # a person, or the system, wants it to stop
            display.say(f"go on with: glassformer resume {folder.path}")
        raise
    return Run(folder.path)


def load(path: str | Path, *, device: str = "auto") -> Run:
    """A trained run, ready to use: `glassformer.load("runs/reviews").predict("What a film")`."""
    return Run(path, device=device)
