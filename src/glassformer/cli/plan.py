"""`glassformer plan`: the cost of a training run, before it starts."""

from typing import TYPE_CHECKING

from rich.table import Table

from glassformer.cli.options import AsJson, Quiet, with_train_options
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from glassformer.runs.estimate import Estimate, Work
    from glassformer.runs.request import TrainRequest

FITS = {True: "yes", False: "no", None: "unknown"}


@with_train_options
def plan(
    request: "TrainRequest", started: float, as_json: AsJson = False, quiet: Quiet = False
) -> None:
    """Estimate what `train` with the same options would cost: parameters, FLOPs, memory and time.

    Example: glassformer plan classify reviews.csv --size base
    """
    from glassformer.cli.results import print_table
    from glassformer.runs.display import Display
    from glassformer.runs.plan import estimate_training

    estimate = estimate_training(request, Display(quiet=quiet), started=started)
    if as_json:
        print_json(estimate.as_values())
        return
    print_table(estimate_table(estimate))
    for note in estimate.notes:
        Terminal().say(note)


def estimate_table(estimate: "Estimate") -> Table:
    """One row per resource, with its breakdown."""
    from glassformer.runs.display import clock, in_bytes

    work, memory, disk = estimate.work, estimate.memory, estimate.disk
    table = Table("", "total", "breakdown", title=f"{estimate.job} on {estimate.machine}")
    modules = [
        f"{name} {count.trainable + count.frozen:,}"
        + (
            f" ({'all' if not count.trainable else f'{count.frozen:,}'} frozen)"
            if count.frozen
            else ""
        )
        for name, count in estimate.parts.items()
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
        "parameters": (f"{estimate.parameters:,}", ", ".join(modules)),
        **({} if work is None else work_lines(work)),
        "memory": (in_bytes(memory.total), ", ".join(held)),
        "available": (room, f"enough: {FITS[memory.fits]}"),
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
    """Steps, tokens and FLOPs."""
    speed = "" if work.speed is None else f", {work.speed / 1e9:,.1f} GFLOP/s"
    return {
        "steps": (f"{work.steps:,}", f"{work.epochs:,.1f} epochs"),
        "tokens": (
            f"{work.steps * work.tokens_a_step:,.0f}",
            f"{work.tokens_a_step:,.0f} per step, {work.tokens_an_epoch:,} per epoch",
        ),
        "compute": (
            f"{work.flops_in_all / 1e12:,.2f} TFLOP",
            f"{work.flops / 1e9:,.2f} GFLOP per step{speed}",
        ),
    }
