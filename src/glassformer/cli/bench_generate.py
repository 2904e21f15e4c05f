"""`glassformer bench generate`: measure the speed of language models on this machine."""

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
    from glassformer.benchmarks.generation.contest import Bench
    from glassformer.benchmarks.generation.report import GenerationReport


def generate(
    only: Only = [],  # noqa: B006
    peers: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with gptfast.py.")
    ] = None,
    rounds: Rounds = 5,
    threads: Threads = None,
    device: Device = "auto",
    small: Annotated[
        bool, typer.Option("--small", help="Use miniatures of all models, to try the command.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Time our generation against gpt-fast and Hugging Face, with the same weights.

    All sides generate the same tokens, which is checked first. A GPU measures one, many and
    engine, a CPU small; keep the machine idle.

    Example: glassformer bench generate --only small --threads 2
    """
    from glassformer.benchmarks.entries import measured_here
    from glassformer.benchmarks.generation.contest import Bench
    from glassformer.benchmarks.generation.works import ENTRIES

    found = find_device(device, threads)
    refuse_unknown(only, ENTRIES)
    bench = Bench(device=found, peers=peers, rounds=rounds, small=small)
    here, elsewhere = measured_here(only, ENTRIES, found, small=small)
    show(run_generation(here, bench, elsewhere, as_json=json), json)


def run_generation(
    names: list[str], bench: "Bench", notes: list[str], *, as_json: bool
) -> "GenerationReport":
    """Measure all of these; what cannot be measured here is left out with a note."""
    from glassformer.benchmarks.generation.report import GenerationReport
    from glassformer.benchmarks.generation.works import measure
    from glassformer.benchmarks.report import busy, describe_machine

    facts = describe_machine(bench.device, bench.rounds)
    del facts["batch"]
    report = GenerationReport(
        machine=facts, notes=busy() + notes, sections={name: [] for name in names}
    )
    measure_each(report, names, partial(measure, bench=bench), as_json=as_json)
    return report
