"""`glassformer bench train`: measure the speed of training on this machine."""

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.bench import (
    Device,
    Only,
    Rounds,
    Threads,
    find_device,
    measure_each,
    refuse_unknown,
    show,
)
from glassformer.cli.options import AsJson

if TYPE_CHECKING:
    from glassformer.benchmarks.training.race import Bench
    from glassformer.benchmarks.training.speed_report import SpeedReport


def bench_train(
    only: Only = [],  # noqa: B006
    peers: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with nanogpt.py.")
    ] = None,
    rounds: Rounds = 5,
    seconds: Annotated[float, typer.Option(min=0.01, help="Length of a turn.")] = 3.0,
    threads: Threads = None,
    device: Device = "auto",
    small: Annotated[
        bool, typer.Option("--small", help="Train miniatures for a moment, to try the command.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Time our training against the same models in torch.nn, and against nanoGPT.

    Both sides take turns. A GPU measures pairs, pairs-default, language-model, reviews and gaps; a
    CPU languages, dates and layers. Data are random, with lengths like those of real ones.

    Example: glassformer bench train --only pairs --only reviews
    """
    from glassformer.benchmarks.entries import measured_here
    from glassformer.benchmarks.training.race import Bench
    from glassformer.benchmarks.training.sizes import FULL, SMALL
    from glassformer.benchmarks.training.works import ENTRIES

    found = find_device(device, threads)
    refuse_unknown(only, ENTRIES)
    here, elsewhere = measured_here(only, ENTRIES, found, small=small)
    with tempfile.TemporaryDirectory(prefix="glassformer-") as folder:
        bench = Bench(
            device=found,
            sizes=SMALL if small else FULL,
            folder=Path(folder),
            peers=peers,
            rounds=1 if small else rounds,
            seconds=0.05 if small else seconds,
            warm_ups=1 if small else 5,
        )
        report = run_training(here, bench, elsewhere, as_json=json)
    show(report, json)


def run_training(
    names: list[str], bench: "Bench", notes: list[str], *, as_json: bool
) -> "SpeedReport":
    """Measure all of these; what cannot be measured here is left out with a note."""
    from glassformer.benchmarks.report import busy, describe_machine
    from glassformer.benchmarks.training.speed_report import SpeedReport
    from glassformer.benchmarks.training.works import measure

    facts = describe_machine(bench.device, bench.rounds) | {"seconds": bench.seconds}
    del facts["batch"]
    report = SpeedReport(machine=facts, notes=busy() + notes, sections={name: [] for name in names})
    measure_each(report, names, partial(measure, bench=bench), as_json=as_json)
    return report
