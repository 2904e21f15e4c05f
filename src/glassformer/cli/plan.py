"""`glassformer plan`: what a training would take, before it begins."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from glassformer.cli.options import asking
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from glassformer.runs.estimate import Estimate, Work
    from glassformer.runs.request import TrainRequest


@asking
def plan(
    asked: "TrainRequest",
    began: float,
    as_json: Annotated[bool, typer.Option("--json", help="Print the estimate as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say nothing meanwhile.")] = False,
) -> None:
    """Tell what `train` with the same options would take: parameters, operations, memory and time.

    Example: glassformer plan classify reviews.csv --size base
    """
    from glassformer.cli.results import print_table
    from glassformer.runs.display import Display
    from glassformer.runs.plan import plan_as

    estimate = plan_as(asked, Display(quiet=quiet), began=began)
    if as_json:
        print_json(estimate.as_values())
        return
    print_table(estimate_table(estimate))
    for note in estimate.notes:
        Terminal().say(note)


def estimate_table(estimate: "Estimate") -> Table:
    """A line for each thing that a training takes, and what that is made of."""
    from glassformer.runs.display import clock, in_bytes

    work, memory, disk = estimate.work, estimate.memory, estimate.disk
    table = Table("", "in all", "of which", title=f"{estimate.job} on {estimate.machine}")
    parts = [
        f"{name} {part.learning + part.frozen:,}"
        + (f" ({'all' if not part.learning else f'{part.frozen:,}'} frozen)" if part.frozen else "")
        for name, part in estimate.parts.items()
    ]
    spent = [f"{name} {clock(seconds)}" for name, seconds in estimate.seconds.items()]
    kinds = ("before", "weights", "gradients", "optimiser", "averages", "activations")
    bytes_of = {name: getattr(memory, name) for name in kinds}
    held = [
        f"{name} {in_bytes(count)}"
        for name, count in bytes_of.items()
        if count or name == "activations"
    ]
    room = "unknown" if memory.room is None else in_bytes(memory.room)
    lines = {
        "parameters": (f"{estimate.parameters:,}", ", ".join(parts)),
        **({} if work is None else work_lines(work)),
        "memory": (in_bytes(memory.total), ", ".join(held)),
        "it has": (room, f"enough: {said(memory.fits)}"),
        **({} if disk is None else {"disk": (in_bytes(disk.total), f"{in_bytes(disk.room)} free")}),
        "time": (
            "not measured" if estimate.time is None else clock(estimate.time),
            ", ".join(spent),
        ),
    }
    for name, cells in lines.items():
        table.add_row(name, *cells)
    return table


def work_lines(work: "Work") -> dict[str, tuple[str, str]]:
    """Steps, tokens and operations."""
    speed = "" if work.speed is None else f", {work.speed / 1e9:,.1f} GFLOP/s"
    return {
        "steps": (f"{work.steps:,}", f"{work.epochs:,.1f} epochs"),
        "tokens": (
            f"{work.steps * work.tokens_a_step:,.0f}",
            f"{work.tokens_a_step:,.0f} a step, {work.tokens_an_epoch:,} an epoch",
        ),
        "operations": (
            f"{work.flops_in_all / 1e12:,.2f} TFLOP",
            f"{work.flops / 1e9:,.2f} GFLOP a step{speed}",
        ),
    }


def said(fits: bool | None) -> str:
    """An answer in a word."""
    return "not known" if fits is None else "yes" if fits else "no"
