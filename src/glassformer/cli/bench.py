"""`glassformer bench`: measure attention, decoding, features and training on this machine."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.bench_progress import BenchProgress
from glassformer.cli.options import AsJson
from glassformer.errors import GlassformerError, is_out_of_memory, unknown
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    import torch

    from glassformer.benchmarks.pairs import Pair
    from glassformer.benchmarks.report import AnyReport, Report

DEVICES = ("auto", "cpu", "cuda")

Only = Annotated[
    list[str], typer.Option(metavar="NAME", help="Measure this work only; may be repeated.")
]
Rounds = Annotated[int, typer.Option(min=1, help="Number of rounds.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; default: PyTorch's choice.")]
Device = Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")]
Job = tuple[str, list[Any], Callable[[], object]]  # label, list for the result, the work itself

app = typer.Typer(
    no_args_is_help=True,
    help="Measure the speed and memory of attention, decoding, features and training.",
)


@app.command()
def attention(
    lengths: Annotated[
        str, typer.Option(metavar="N,N,...", help="Sequence lengths.")
    ] = "128,256,512,1024,2048,4096",
    rounds: Rounds = 20,
    threads: Threads = None,
    device: Device = "auto",
    bars: Annotated[
        bool, typer.Option("--bars", help="Also measure full layers, packing and memory growth.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Plot cost against length.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure time and memory of every kernel and layer, each against a peer.

    Times are medians over rounds in which the two alternate; keep the machine idle. Takes
    several minutes on two CPU cores.

    Example: glassformer bench attention --lengths 128,512,2048 --chart cost.png
    """
    from glassformer.benchmarks.chart import draw
    from glassformer.explaining.views.pictures import check_picture

    chosen, place = parse_lengths(lengths), find_device(device, threads)
    if chart is not None:
        check_picture(chart)
    report = run(chosen, rounds, place, bars, as_json=json)
    if chart is not None:
        draw(report.sections["complexity"], chart, caption(report))
    show(report, json)


@app.command()
def translate(
    rounds: Rounds = 5, threads: Threads = None, device: Device = "auto", json: AsJson = False
) -> None:
    """Time our decoding against Hugging Face's and CTranslate2's, with the same weights.

    A model of 6 + 6 layers translates 32 sentences, greedily and with a beam of 4. Takes 15
    minutes or more on two CPU cores; keep the machine idle.

    Example: glassformer bench translate --threads 2 --device cpu
    """
    show(run_translation(rounds, find_device(device, threads), as_json=json), json)


def parse_lengths(text: str) -> list[int]:
    """Parse comma-separated lengths; sorted, without duplicates.

    >>> parse_lengths("512,128, 128")
    [128, 512]
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and int(word) > 0 for word in words):
        raise GlassformerError(
            f"lengths must be positive integers separated by commas, got {text!r}; "
            f"write --lengths 128,256"
        )
    return sorted({int(word) for word in words})


def find_device(name: str, threads: int | None) -> "torch.device":
    """The named device; `auto` is a GPU if there is one. Sets the number of CPU threads."""
    import torch

    if name not in DEVICES:
        raise GlassformerError(unknown("device", name, DEVICES))
    if threads is not None:
        torch.set_num_threads(threads)
    found = torch.cuda.is_available()
    if name == "cuda" and not found:
        raise GlassformerError("no CUDA device found; use --device cpu or auto")
    return torch.device("cuda" if found and name != "cpu" else "cpu")


def run(
    lengths: list[int], rounds: int, device: "torch.device", bars: bool, *, as_json: bool
) -> "Report":
    """Run the attention benchmarks."""
    from glassformer.benchmarks import attention, complexity, layers
    from glassformer.benchmarks.report import Report, busy, describe_machine

    rungs, left_out = attention.ladder(lengths, device)
    kinds, remarks = complexity.costs(lengths, device)
    plan = {"ladder": rungs, "complexity": kinds}
    if bars:
        plan |= {"layers": layers.layers(device), "packing": layers.packing(device)}
    report = Report(machine=describe_machine(device, rounds), notes=busy() + left_out + remarks)
    growths: list[Job] = [
        (f"memory, {what.case}", report.growths, partial(layers.measure_growth, what, device))
        for what in (layers.growths() if bars else [])
    ]
    measure_pairs(report, plan, growths, device, as_json=as_json, advice="use shorter --lengths")
    return report


def run_translation(rounds: int, device: "torch.device", *, as_json: bool) -> "Report":
    """Run the translation benchmarks."""
    from glassformer.benchmarks import translation
    from glassformer.benchmarks.report import Report, busy, describe_machine

    even, left_out = translation.even_pairs(device)
    plan = {"even": even, "ragged": translation.ragged_pairs(device)}
    machine = describe_machine(device, rounds) | translation.describe_batch(device)
    report = Report(machine=machine, notes=busy() + left_out)
    outputs: list[Job] = [
        (f"output of {pair.theirs}", report.notes, partial(translation.agreement, pair))
        for pair in even
    ]
    measure_pairs(report, plan, outputs, device, as_json=as_json, advice="use --device cpu")
    return report


@contextmanager
def shown_if_cut_short(report: "AnyReport[Any]", as_json: bool) -> Iterator[None]:
    """Print partial results if the benchmark is interrupted or fails."""
    try:
        yield
    except BaseException:
        if report.drop_empty():
            report.notes.append("interrupted: results are incomplete")
            show(report, as_json)
        raise


def measure_pairs(
    report: "Report",
    plan: Mapping[str, Sequence["Pair"]],
    more: Sequence[Job],
    device: "torch.device",
    *,
    as_json: bool,
    advice: str,
) -> None:
    """Measure all pairs, each for the section of its name, and more, with a progress bar.

    Args:
        advice: Shown if the device runs out of memory.
    """
    from glassformer.benchmarks.pairs import measure

    report.sections, rounds = {name: [] for name in plan}, report.machine["rounds"]
    jobs: list[Job] = [
        (
            f"{pair.ours} against {pair.theirs}, {pair.case}, length {pair.length}",
            report.sections[name],
            partial(measure, pair, device=device, rounds=rounds),
        )
        for name, pairs in plan.items()
        for pair in pairs
    ]
    with shown_if_cut_short(report, as_json), BenchProgress(len(jobs) + len(more)) as progress:
        for label, results, job in [*jobs, *more]:
            progress.begin(label)
            results.append(attempt(label, job, advice))
            progress.finish()


def attempt(label: str, job: Callable[[], object], advice: str) -> object:
    """Run one job; running out of memory becomes a one-line error."""
    import torch

    try:
        return job()
    except torch.OutOfMemoryError:
        raise GlassformerError(f"{label}: does not fit in device memory; {advice}") from None


def caption(report: "AnyReport[Any]") -> str:
    """The machine and settings behind the numbers, in one line."""
    facts = report.machine
    items = [facts["device"], facts["dtype"], f"torch {facts['torch']}"]
    if "batch" in facts:
        items.append(f"batch {facts['batch']}")
    if facts["type"] == "cpu":
        items.append(f"threads {facts['threads']}")
    return ", ".join(items)


def show(report: "AnyReport[Any]", as_json: bool) -> None:
    """Print the report on standard output."""
    if as_json:
        print_json(report.as_values())
        return
    tables, console = report.tables(), Terminal()
    # Let a narrow terminal wrap lines; rich would cut off numbers.
    widths = (Terminal(width=1000).measure(table).maximum for table in tables)
    console.width = max(console.width, *widths, 0)
    console.say(caption(report))
    console.print(f"{report.legend}\n")
    for table in tables:
        console.print(table)
    for note in report.notes:
        console.say(f"Note: {note}")


def refuse_unknown(names: Iterable[str], entries: Collection[str]) -> None:
    """Refuse the name of work that does not exist."""
    for name in names:
        if name not in entries:
            raise GlassformerError(unknown("work", name, entries))


def measure_each(
    report: "AnyReport[Any]",
    names: Sequence[str],
    measure: Callable[[str], Iterable[Any]],
    *,
    as_json: bool,
) -> None:
    """Measure all of these; what cannot be measured here is left out with a note."""
    with shown_if_cut_short(report, as_json), BenchProgress(len(names)) as progress:
        for name in names:
            progress.begin(name)
            try:
                results = list(measure(name))
                report.sections[name] += results
                remarks = dict.fromkeys(r for one in results for r in one.remarks)
                report.notes += [f"{name}: {remark}" for remark in remarks]
            except GlassformerError as error:
                report.notes.append(f"{name}: left out, {error}")
            except Exception as error:
                if not is_out_of_memory(error):
                    raise
                report.notes.append(f"{name}: left out, does not fit in device memory")
            progress.finish()
