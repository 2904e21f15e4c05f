"""`glassformer bench train`: measure the speed of training on this machine."""

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from glassformer.cli.bench import (
    DEVICES,
    check_counts,
    check_device,
    find_device,
    show,
)
from glassformer.cli.bench_contests import measure_each
from glassformer.errors import GlassformerError, unknown

Number = TypeVar("Number", int, float)

if TYPE_CHECKING:
    from glassformer.benchmarks.training.contest import Bench
    from glassformer.benchmarks.training.speed_report import SpeedReport


def bench_train(
    only: Annotated[
        list[str], typer.Option(metavar="NAME", help="Measure this work only; may be repeated.")
    ] = [],  # noqa: B006
    peers: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with nanogpt.py.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Number of turns per side; default: 5, or 1 with --small.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="Length of a turn; default: 3, or 0.05 with --small.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; default: PyTorch's choice.")
    ] = None,
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "auto",
    small: Annotated[
        bool, typer.Option("--small", help="Train miniatures of all models, to try the command.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time our training against the same models in torch.nn, and against nanoGPT.

    Both sides take turns. A GPU measures pairs, pairs-default, language-model, reviews and gaps; a
    CPU languages, dates and layers. Data are random, with lengths like those of real ones.

    Example: glassformer bench train --only pairs --only reviews
    """
    rounds, seconds = default(rounds, 1 if small else 5), default(seconds, 0.05 if small else 3.0)
    check_counts(rounds, threads, default=5)
    if not seconds > 0:
        raise GlassformerError(f"seconds must be above 0, got {seconds:g}; write --seconds 3")
    check_device(device)
    found = find_device(device, threads)
    from glassformer.benchmarks.training.contest import Bench
    from glassformer.benchmarks.training.sizes import FULL, SMALL
    from glassformer.benchmarks.training.works import ENTRIES

    for name in only:
        if name not in ENTRIES:
            raise GlassformerError(unknown("work", name, ENTRIES))
    here = [name for name, entry in ENTRIES.items() if small or entry.device == found.type]
    with tempfile.TemporaryDirectory(prefix="glassformer-") as folder:
        bench = Bench(
            device=found,
            sizes=SMALL if small else FULL,
            folder=Path(folder),
            peers=peers,
            rounds=rounds,
            seconds=seconds,
            warm_ups=1 if small else 5,
        )
        report = run_training(only or here, bench, as_json=json)
    show(report, json)


def default(given: Number | None, otherwise: Number) -> Number:
    """What was given, if anything was."""
    return otherwise if given is None else given


def run_training(names: list[str], bench: "Bench", *, as_json: bool) -> "SpeedReport":
    """Measure all of these; what cannot be measured here is left out with a note."""
    from glassformer.benchmarks.report import busy, describe_machine
    from glassformer.benchmarks.training.speed_report import SpeedReport
    from glassformer.benchmarks.training.works import measure

    facts = describe_machine(bench.device, bench.rounds) | {"seconds": bench.seconds}
    del facts["batch"]
    report = SpeedReport(machine=facts, notes=busy(), sections={name: [] for name in names})
    measure_each(report, names, partial(measure, bench=bench), as_json=as_json)
    return report
