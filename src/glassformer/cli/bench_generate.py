"""`glassformer bench generate`: measure the speed of language models on this machine."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from glassformer.benchmarks.generation.contest import Bench
    from glassformer.benchmarks.generation.report import GenerationReport


def generate(
    only: Annotated[
        list[str], typer.Option(metavar="NAME", help="Measure this work only; may be repeated.")
    ] = [],  # noqa: B006
    peers: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with gptfast.py.")
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of turns per side.")] = 5,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; default: PyTorch's choice.")
    ] = None,
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "auto",
    small: Annotated[
        bool, typer.Option("--small", help="Use miniatures of all models, to try the command.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time our generation against gpt-fast and Hugging Face, with the same weights.

    All sides generate the same tokens, which is checked first. A GPU measures one and many, a CPU
    small; keep the machine idle.

    Example: glassformer bench generate --only small --threads 2
    """
    check_counts(rounds, threads, default=5)
    check_device(device)
    found = find_device(device, threads)
    from glassformer.benchmarks.generation.contest import Bench
    from glassformer.benchmarks.generation.works import ENTRIES

    for name in only:
        if name not in ENTRIES:
            raise GlassformerError(unknown("work", name, ENTRIES))
    bench = Bench(device=found, peers=peers, rounds=rounds, small=small)
    show(run_generation(only or list(ENTRIES), bench, as_json=json), json)


def run_generation(names: list[str], bench: "Bench", *, as_json: bool) -> "GenerationReport":
    """Measure all of these that belong on this device; miniatures run on any."""
    from glassformer.benchmarks.generation.report import GenerationReport
    from glassformer.benchmarks.generation.works import ENTRIES, measure
    from glassformer.benchmarks.report import busy, describe_machine

    facts = describe_machine(bench.device, bench.rounds)
    del facts["batch"]
    here = [name for name in names if bench.small or ENTRIES[name].device == bench.device.type]
    elsewhere = [
        f"{name}: left out, it is measured on {ENTRIES[name].device}"
        for name in names
        if name not in here
    ]
    report = GenerationReport(
        machine=facts, notes=busy() + elsewhere, sections={name: [] for name in here}
    )
    measure_each(report, here, partial(measure, bench=bench), as_json=as_json)
    return report
