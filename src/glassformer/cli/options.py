"""The options by which a person asks for a training, written once for every command with them.

`train` does what is asked, `plan` tells what it would take.
"""

import inspect
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.config.model import SIZES
from glassformer.config.training import DEVICE_NAMES
from glassformer.tasks import JOBS

if TYPE_CHECKING:
    from glassformer.runs.request import TrainRequest

Files = Annotated[list[str], typer.Argument(metavar="DATA...", help="Files, folders or set names.")]
Columns = Annotated[
    str, typer.Option(metavar="ROLE=COLUMN,...", help="Roles: text, label, source, target ...")
]


Device = Annotated[str, typer.Option(help=", ".join(DEVICE_NAMES))]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]


def asked_for(
    job: Annotated[str, typer.Argument(metavar="JOB", help=f"One of {', '.join(JOBS)}.")],
    data: Files,
    run: Annotated[
        Path | None, typer.Option(help="Where the run goes; by default under runs/.")
    ] = None,
    valid: Annotated[list[str], typer.Option(help="Data to choose the model by.")] = [],  # noqa: B006
    test: Annotated[list[str], typer.Option(help="Data to score it on at the end.")] = [],  # noqa: B006
    columns: Columns = "",
    group: Annotated[
        str | None, typer.Option(metavar="COL", help="Rows that agree here stay in one part.")
    ] = None,
    size: Annotated[str | None, typer.Option(help=f"The dial: {', '.join(SIZES)}.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="F.toml", help="Settings from a file.")
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="key=value", help="One setting; may repeat.")
    ] = [],  # noqa: B006
    steps: Annotated[int | None, typer.Option(min=1, help="Train for so many steps.")] = None,
    epochs: Annotated[float | None, typer.Option(help="Train for so many epochs.")] = None,
    time: Annotated[
        str | None, typer.Option(metavar="T", help="All in all so long: 90s, 10m, 1h30m.")
    ] = None,
    pretrain: Annotated[
        bool, typer.Option("--pretrain/--no-pretrain", help="Learn the texts first if it helps.")
    ] = True,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
    origin: Annotated[
        Path | None, typer.Option("--from", metavar="RUN", help="Begin with what a run learned.")
    ] = None,
    module: Annotated[
        str | None, typer.Option(help="Take only this module of it: encoder, ...")
    ] = None,
    device: Annotated[str | None, typer.Option(help=", ".join(DEVICE_NAMES))] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same bits on a GPU, too.")
    ] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Then train on less, to see if more data would help.")
    ] = False,
) -> "TrainRequest":
    """What these options ask for."""
    from glassformer.data.columns import parse_columns
    from glassformer.runs.request import TrainRequest

    return TrainRequest(
        job=job,
        data=tuple(data),
        run=run,
        valid=tuple(valid),
        test=tuple(test),
        columns=parse_columns(columns) if columns else {},
        group=group,
        size=size,
        config=config,
        settings=tuple(settings),
        steps=steps,
        epochs=epochs,
        time=time,
        pretrain=pretrain,
        seed=seed,
        origin=origin,
        module=module,
        device=device,
        deterministic=deterministic,
        curve=curve,
    )


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command all the options above before its own.

    It is called with what they ask for, and with when it began: before torch was imported.
    """
    shared = inspect.signature(asked_for).parameters
    _asked, _began, *own = inspect.signature(command).parameters.values()

    @wraps(command)
    def with_options(**given: Any) -> None:
        began = time.monotonic()
        asked = asked_for(**{name: given.pop(name) for name in shared})
        command(asked, began, **given)

    together = [*shared.values(), *own]
    with_options.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    # What is read beside the signature must name the same parameters.
    with_options.__annotations__ = {each.name: each.annotation for each in together}
    return with_options
