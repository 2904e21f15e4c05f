"""Generation speeds and the machine, as a table and as plain values."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from glassformer.benchmarks.generation.works import Speed
from glassformer.benchmarks.report import AnyReport, empty_table, times


class GenerationReport(AnyReport[Speed]):
    """The results of `glassformer bench generate`."""

    legend = (
        "Generated tokens per second. Ratio above 1: ours is faster. Low and high are the 95 % "
        "interval. Start: seconds of the first call, compilation included."
    )

    def as_values(self) -> dict[str, Any]:
        found = [asdict(one) for results in self.sections.values() for one in results]
        return {"machine": self.machine, "notes": self.notes, "generation": found}

    def tables(self) -> list[Table]:
        found = [one for results in self.sections.values() for one in results]
        return [speed_table(found)] if found else []


def speed_table(results: Sequence[Speed]) -> Table:
    """Ours and theirs side by side."""
    numbers = ("tokens/s", "theirs", "ratio", "low", "high", "bar", "aim", "start", "theirs")
    table = empty_table("Generation", ("work", "against"), numbers)
    for this, following in zip(results, [*results[1:], None], strict=True):
        table.add_row(
            f"{this.work}, {this.case}",
            this.theirs,
            f"{this.speed.ours:,.0f}",
            f"{this.speed.theirs:,.0f}",
            *map(times, (this.speed.ratio, this.speed.low, this.speed.high)),
            *("-" if goal is None else times(goal) for goal in (this.bar, this.aim)),
            *(f"{seconds:.1f}" for seconds in (this.start, this.their_start)),
            end_section=following is None or following.work != this.work,
        )
    return table
