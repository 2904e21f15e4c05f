"""`glassformer train` and `resume`: from raw data to a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from glassformer.config.model import SIZES
from glassformer.config.run import JOB_NAMES
from glassformer.config.training import DEVICE_NAMES

Files = Annotated[list[str], typer.Argument(metavar="DATA...", help="Files, folders or set names.")]
Path_ = Path | None


def train(
    job: Annotated[str, typer.Argument(metavar="JOB", help=f"One of {', '.join(JOB_NAMES)}.")],
    data: Files,
    run: Annotated[Path_, typer.Option(help="Where the run goes; by default under runs/.")] = None,
    valid: Annotated[list[str], typer.Option(help="Data to choose the model by.")] = [],  # noqa: B006
    test: Annotated[list[str], typer.Option(help="Data to score it on at the end.")] = [],  # noqa: B006
    columns: Annotated[str, typer.Option(metavar="text=...,label=...", help="Columns.")] = "",
    group: Annotated[
        str | None, typer.Option(metavar="COL", help="Rows that agree here stay in one part.")
    ] = None,
    size: Annotated[str | None, typer.Option(help=f"The dial: {', '.join(SIZES)}.")] = None,
    config: Annotated[Path_, typer.Option(metavar="F.toml", help="Settings from a file.")] = None,
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
        Path_, typer.Option("--from", metavar="RUN", help="Begin with what a run learned.")
    ] = None,
    part: Annotated[str | None, typer.Option(help="Only this part of it: encoder, ...")] = None,
    device: Annotated[str | None, typer.Option(help=", ".join(DEVICE_NAMES))] = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="The same bits on a GPU, too.")
    ] = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Then train on less, to see if more data would help.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing meanwhile.")] = False,
) -> None:
    """Train a model on raw data and say how good it is.

    Example: glassformer train classify reviews.csv
    """
    refuse_both({"--steps": steps, "--epochs": epochs, "--time": time})
    if part is not None and origin is None:
        raise typer.BadParameter(f"--part {part} needs a run to take it from; add --from RUN")
    from glassformer.cli.results import show_run
    from glassformer.data.columns import parse_columns
    from glassformer.runs.asked import Asked
    from glassformer.runs.display import Display
    from glassformer.runs.verbs import train_as

    asked = Asked(
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
        part=part,
        device=device,
        deterministic=deterministic,
        curve=curve,
    )
    show_run(train_as(asked, Display(quiet=quiet)), as_json=as_json)


def refuse_both(options: Mapping[str, object]) -> None:
    """Of options that say the same thing, one may be given."""
    given = [name for name, value in options.items() if value is not None]
    if len(given) > 1:
        raise typer.BadParameter(f"{' and '.join(given)} both say how long; give one of them")


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing meanwhile.")] = False,
) -> None:
    """Go on with a run that was interrupted, to the same end.

    Example: glassformer resume runs/reviews
    """
    from glassformer.cli.results import show_run
    from glassformer.runs.verbs import resume as resume_run

    show_run(resume_run(run, quiet=quiet), as_json=as_json)
