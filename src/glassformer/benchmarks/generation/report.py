"""Generation speeds and the machine, as a table and as plain values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from rich.table import Table

from glassformer.benchmarks.generation.works import Speed
from glassformer.benchmarks.report import empty_table, times


@dataclass(kw_only=True, slots=True)
class GenerationReport:
    """The results of `glassformer bench generate`."""

    legend: ClassVar[str] = (
        "Generated tokens per second. Ratio above 1: ours is faster. Low and high are the 95 % "
        "interval. Start: seconds of the first call, compilation included."
    )

    machine: dict[str, Any]
    notes: list[str]
    sections: dict[str, list[Speed]] = field(default_factory=dict)

    def drop_empty(self) -> bool:
        """Drop the work without results; whether any is left."""
        self.sections = {name: found for name, found in self.sections.items() if found}
        return bool(self.sections)

    def as_values(self) -> dict[str, Any]:
        """Everything, in tokens per second and seconds."""
        found = [asdict(one) for results in self.sections.values() for one in results]
        return {"machine": self.machine, "notes": self.notes, "generation": found}

    def tables(self) -> list[Table]:
        """One row per peer."""
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
