"""`glassformer plan`: the cost of a training run, before it starts."""

from typing import TYPE_CHECKING

from rich.table import Table

from glassformer.cli.options import AsJson, Quiet, with_train_options
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from glassformer.runs.estimate import Estimate
    from glassformer.runs.request import TrainRequest


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
    table = Table("", "total", "breakdown", title=estimate.title)
    for row in estimate.rows():
        table.add_row(*row)
    return table
