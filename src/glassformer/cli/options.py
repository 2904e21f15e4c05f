"""Options that several commands share: those of a training request, and smaller ones."""

import inspect
import shlex
import time
from collections.abc import Callable, Collection
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from glassformer.config.model import SIZES
from glassformer.config.training import DEVICE_NAMES
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS

Files = Annotated[
    list[str], typer.Argument(metavar="DATA", help="Files, folders or named data sets.")
]
Columns = Annotated[
    str,
    typer.Option(
        metavar="ROLE=COLUMN,...", help="Columns by role, such as text=review,label=stars."
    ),
]
Header = Annotated[
    str | None,
    typer.Option(metavar="yes|no", help="Whether the first row of a text table names its columns."),
]
Valid = Annotated[list[str], typer.Option(metavar="DATA", help="Validation data.")]
Test = Annotated[list[str], typer.Option(metavar="DATA", help="Test data.")]
Unlabelled = Annotated[
    list[str], typer.Option(metavar="DATA", help="Data without labels, to pretrain on.")
]
Group = Annotated[
    str | None, typer.Option(metavar="COL", help="Keep rows with the same value in one split.")
]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="key=value", help="Override one setting; repeatable.")
]
Seed = Annotated[int | None, typer.Option(min=0, help="Random seed.")]
Device = Annotated[str, typer.Option(help=", ".join(DEVICE_NAMES))]
AnyDevice = Annotated[str | None, typer.Option(help=", ".join(DEVICE_NAMES))]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]
Int8 = Annotated[
    bool, typer.Option("--int8", help="Compute in int8 on a CPU: faster, a little less exact.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Suppress progress output.")]


def described_jobs() -> str:
    """The jobs, each with its sentence; one that cannot be loaded has none."""
    lines = []
    for job in JOBS:
        try:
            lines.append(f"{job}: {JOBS.about(job).summary}")
        except GlassformerError:
            lines.append(f"{job}.")
    return "\n\n".join(lines)


def not_a_file(job: str) -> str:
    """The job; data in its place are refused with a hint, before more is asked for.

    A word for a job may also be the name of a folder: it is taken for the word.
    """
    if job in JOBS or not Path(job).exists():
        return job
    data = shlex.quote(job)
    if JOBS.is_wish(job) and Path(job).name == job and not Path(job).suffix:
        try:
            JOBS.refuse_unknown(job)
        except GlassformerError as error:
            hint = f"if {data} is your data, put the job before it"
            raise GlassformerError(f"{error.args[0]}; {hint}") from None
    raise GlassformerError(
        f"the job comes before the data, as in `glassformer train classify {data}`; the jobs "
        f"are {', '.join(JOBS)} (`glassformer doctor {data}` guesses which one fits)"
    )


def train_options(
    job: Annotated[str, typer.Argument(metavar="JOB", help=described_jobs(), callback=not_a_file)],
    data: Files,
    run: Annotated[
        Path | None, typer.Option(help="Run folder to create; default: under runs/.")
    ] = None,
    valid: Valid = [],  # noqa: B006
    test: Test = [],  # noqa: B006
    unlabelled: Unlabelled = [],  # noqa: B006
    columns: Columns = "",
    header: Header = None,
    group: Group = None,
    size: Annotated[str | None, typer.Option(help=f"Model size: {', '.join(SIZES)}.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="F.toml", help="Read settings from a TOML file.")
    ] = None,
    settings: Settings = [],  # noqa: B006
    steps: Annotated[int | None, typer.Option(min=1, help="Number of training steps.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Number of epochs.")] = None,
    time: Annotated[
        str | None, typer.Option(metavar="T", help="Total time budget, such as 90s, 10m, 1h30m.")
    ] = None,
    flops: Annotated[
        float | None, typer.Option(metavar="N", help="Total compute of all steps, such as 1e15.")
    ] = None,
    pretrain: Annotated[
        bool,
        typer.Option("--pretrain/--no-pretrain", help="Pretrain on the same data if it helps."),
    ] = True,
    seed: Seed = None,
    origin: Annotated[
        Path | None,
        typer.Option("--from", metavar="RUN", help="Start from the weights of another run."),
    ] = None,
    module: Annotated[
        str | None, typer.Option(help="Copy only this module of --from: encoder, ...")
    ] = None,
    device: AnyDevice = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="Bit-identical results on a GPU, too.")
    ] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Add a learning curve: would more data help?")
    ] = False,
) -> None:
    """The options of a training request: their names, types and help."""


def with_train_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options above to a command, before its own.

    The command is called with the request and with the time when it started: before torch was
    imported.
    """
    return with_some_train_options()(command)


def with_some_train_options(*, but: Collection[str] = ()) -> Callable[..., Callable[..., None]]:
    """The same for a command to which some of the options do not apply."""
    return partial(_with_options, but=but)


def _with_options(command: Callable[..., None], but: Collection[str]) -> Callable[..., None]:
    every = inspect.signature(train_options).parameters
    shared = {name: one for name, one in every.items() if name not in but}
    _request, _started, *own = inspect.signature(command).parameters.values()

    @wraps(command)
    def with_options(**given: Any) -> None:
        started = time.monotonic()
        from glassformer.runs.arguments import train_request

        request = train_request(**{name: given.pop(name) for name in shared})
        command(request, started, **given)

    together = [*shared.values(), *own]
    with_options.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    # typer also reads the annotations, which must name the same parameters.
    with_options.__annotations__ = {each.name: each.annotation for each in together}
    return with_options
