"""`glassformer bench`: measure this machine, and us on it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from glassformer.errors import GlassformerError, unknown
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    import torch

    from glassformer.benchmarks.pairs import Pair
    from glassformer.benchmarks.report import Report

DEVICES = ("auto", "cpu", "cuda")

Job = tuple[str, list[Any], Callable[[], object]]  # what it is, where its result goes, and it

app = typer.Typer(
    no_args_is_help=True, help="Measure how fast attention and translation are, and what they take."
)


@app.command()
def attention(
    lengths: Annotated[
        str, typer.Option(metavar="N,N,...", help="Lengths of the sequences.")
    ] = "128,256,512,1024,2048,4096",
    rounds: Annotated[int, typer.Option(help="How often each pair runs, in turns.")] = 20,
    threads: Annotated[
        int | None, typer.Option(help="Processor threads; PyTorch's choice unless given.")
    ] = None,
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "auto",
    bars: Annotated[
        bool, typer.Option("--bars", help="Whole layers, packing and memory growth, too.")
    ] = False,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Draw cost against length.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Time and weigh every kernel, our layers and other kinds of layer, each against a peer.

    Times are medians of rounds in which both run in turns; keep the machine quiet meanwhile.

    Example: glassformer bench attention --lengths 128,512,2048 --chart cost.png
    """
    chosen = parse_lengths(lengths)
    check_counts(rounds, threads, usual=20)
    check_device(device)
    from glassformer.benchmarks.chart import check_chart, draw

    if chart is not None:
        check_chart(chart)
    report = run(chosen, rounds, find_device(device, threads), bars, as_json=json)
    if chart is not None:
        draw(report.sections["complexity"], chart, caption(report))
    show(report, json)


@app.command()
def translate(
    rounds: Annotated[int, typer.Option(help="How often each pair runs, in turns.")] = 5,
    threads: Annotated[
        int | None, typer.Option(help="Processor threads; PyTorch's choice unless given.")
    ] = None,
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "auto",
    json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Time our decoding against Hugging Face's and CTranslate2's, with the same weights.

    A translator of 6 + 6 layers translates 32 sentences, greedily and with a beam of 4. It takes
    a quarter of an hour or more on two processors; keep the machine quiet meanwhile.

    Example: glassformer bench translate --threads 2 --device cpu
    """
    check_counts(rounds, threads, usual=5)
    check_device(device)
    show(run_translation(rounds, find_device(device, threads), as_json=json), json)


def parse_lengths(text: str) -> list[int]:
    """Lengths as a person types them, shortest first, each once.

    >>> parse_lengths("512,128, 128")
    [128, 512]
    """
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and int(word) > 0 for word in words):
        raise GlassformerError(
            f"lengths must be whole numbers of 1 or more between commas, got {text!r}; "
            f"write --lengths 128,256"
        )
    return sorted({int(word) for word in words})


def at_least_one(name: str, number: int, *, usual: int) -> None:
    """Refuse a count of nothing."""
    if number < 1:
        raise GlassformerError(f"{name} must be 1 or more, got {number}; write --{name} {usual}")


def check_counts(rounds: int, threads: int | None, *, usual: int) -> None:
    """Refuse counts of nothing."""
    at_least_one("rounds", rounds, usual=usual)
    if threads is not None:
        at_least_one("threads", threads, usual=1)


def check_device(name: str) -> None:
    """Refuse a device of another name, before PyTorch is loaded."""
    if name not in DEVICES:
        raise GlassformerError(unknown("device", name, DEVICES))


def find_device(name: str, threads: int | None) -> "torch.device":
    """The device of that name, with so many threads; `auto` is a GPU where there is one."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    found = torch.cuda.is_available()
    if name == "cuda" and not found:
        raise GlassformerError("PyTorch finds no CUDA device here; use --device cpu or auto")
    return torch.device("cuda" if found and name != "cpu" else "cpu")


def run(
    lengths: list[int], rounds: int, device: "torch.device", bars: bool, *, as_json: bool
) -> "Report":
    """Measure all about attention that is asked for."""
    from glassformer.benchmarks import attention, complexity, layers
    from glassformer.benchmarks.report import Report, busy, describe_machine

    rungs, left_out = attention.ladder(lengths, device)
    kinds, remarks = complexity.costs(lengths, device)
    plan = {"ladder": rungs, "complexity": kinds}
    if bars:
        plan |= {"layers": layers.layers(device), "packing": layers.packing(device)}
    report = Report(
        machine=describe_machine(device, rounds),
        notes=busy() + left_out + remarks,
        sections={name: [] for name in plan},
    )
    jobs = pair_jobs(report, plan, device, rounds)
    jobs += [
        (f"memory, {what.case}", report.growths, partial(layers.weigh_growth, what, device))
        for what in (layers.growths() if bars else [])
    ]
    with shown_if_cut_short(report, as_json):
        work_through(jobs, "use shorter --lengths")
    return report


def run_translation(rounds: int, device: "torch.device", *, as_json: bool) -> "Report":
    """Measure our decoding against that of others."""
    from glassformer.benchmarks import translation
    from glassformer.benchmarks.report import Report, busy, describe_machine

    even, left_out = translation.even_pairs(device)
    plan = {"even": even, "ragged": translation.ragged_pairs(device)}
    report = Report(
        machine=describe_machine(device, rounds) | translation.describe_batch(device),
        notes=busy() + left_out,
        sections={name: [] for name in plan},
    )
    jobs = pair_jobs(report, plan, device, rounds)
    jobs += [
        (f"what {pair.theirs} says", report.notes, partial(translation.agreement, pair))
        for pair in even
    ]
    with shown_if_cut_short(report, as_json):
        work_through(jobs, "use --device cpu")
    return report


@contextmanager
def shown_if_cut_short(report: "Report", as_json: bool) -> Iterator[None]:
    """Print what was measured so far when measuring ends early, by Ctrl-C or an error."""
    try:
        yield
    except BaseException:
        report.sections = {name: found for name, found in report.sections.items() if found}
        if report.sections:
            report.notes.append("measuring was cut short: what is not here was still to come")
            show(report, as_json)
        raise


def pair_jobs(
    report: "Report", plan: Mapping[str, Sequence["Pair"]], device: "torch.device", rounds: int
) -> list[Job]:
    """A job a pair, its result to be put in the section of its name."""
    from glassformer.benchmarks.pairs import measure

    return [
        (
            f"{pair.ours} against {pair.theirs}, {pair.case}, length {pair.length}",
            report.sections[name],
            partial(measure, pair, device=device, rounds=rounds),
        )
        for name, pairs in plan.items()
        for pair in pairs
    ]


def work_through(jobs: list[Job], advice: str) -> None:
    """Do all jobs, with a bar on standard error; the advice is for a device that is too small."""
    with progress_bar() as progress:
        task = progress.add_task("", total=len(jobs))
        for label, results, job in jobs:
            progress.update(task, description=label)
            results.append(attempt(label, job, advice))
            progress.advance(task)


def attempt(label: str, job: Callable[[], object], advice: str) -> object:
    """What the job finds, or a sentence when it does not fit the device."""
    import torch

    try:
        return job()
    except torch.OutOfMemoryError:
        raise GlassformerError(
            f"{label}: does not fit the memory of this device; {advice}"
        ) from None


def progress_bar() -> Progress:
    """On standard error, and only where someone watches."""
    console = Terminal(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def caption(report: "Report") -> str:
    """Where the numbers come from, in a line."""
    facts = report.machine
    said = [facts["device"], facts["dtype"], f"torch {facts['torch']}", f"batch {facts['batch']}"]
    if facts["type"] == "cpu":
        said.append(f"threads {facts['threads']}")
    return ", ".join(said)


def show(report: "Report", as_json: bool) -> None:
    """Print what was found on standard output."""
    if as_json:
        print_json(report.as_values())
        return
    tables, console = report.tables(), Terminal()
    # A terminal that is too narrow folds the lines, rather than rich losing numbers.
    widest = max(Terminal(width=1000).measure(table).maximum for table in tables)
    console.width = max(console.width, widest)
    console.say(caption(report))
    console.print("A ratio below 1: ours is faster. Low to high is its 95 % interval.\n")
    for table in tables:
        console.print(table)
    for note in report.notes:
        console.say(f"Note: {note}")
