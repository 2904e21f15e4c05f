"""Training speeds and the machine, as a table and as plain values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from rich.table import Table

from glassformer.benchmarks.report import empty_table, megabytes, times
from glassformer.benchmarks.training.works import ENTRIES, Speed


@dataclass(kw_only=True, slots=True)
class SpeedReport:
    """The results of `glassformer bench train`."""

    legend: ClassVar[str] = (
        "Real tokens per second in training. Ratio above 1: ours is faster. Low and high are the "
        "95 % interval. Start: seconds of the first ten steps."
    )

    machine: dict[str, Any]
    notes: list[str]
    sections: dict[str, list[Speed]] = field(default_factory=dict)

    def drop_empty(self) -> bool:
        """Drop the work without results; whether any is left."""
        self.sections = {name: found for name, found in self.sections.items() if found}
        return bool(self.sections)

    def as_values(self) -> dict[str, Any]:
        """Everything, in tokens per second, seconds and bytes."""
        found = [asdict(one) for results in self.sections.values() for one in results]
        return {"machine": self.machine, "notes": self.notes, "training": found}

    def tables(self) -> list[Table]:
        """One table per piece of work."""
        return [
            speed_table(f"{name}: {ENTRIES[name].what}", results)
            for name, results in self.sections.items()
            if results
        ]


def speed_table(title: str, results: Sequence[Speed]) -> Table:
    """One row per peer."""
    speeds = ("tokens/s", "theirs", "ratio", "low", "high", "bar", "aim")
    others = ("of peak", "theirs", "MB", "theirs", "start", "theirs")
    table = empty_table(title, ("case", "against"), (*speeds, *others))
    for this in results:
        table.add_row(
            this.case,
            this.theirs,
            f"{this.speed.ours:,.0f}",
            f"{this.speed.theirs:,.0f}",
            *map(times, (this.speed.ratio, this.speed.low, this.speed.high, this.bar, this.aim)),
            *map(percent, (this.peak_share, this.their_peak_share)),
            *map(megabytes, (this.memory, this.their_memory)),
            *(f"{seconds:.1f}" for seconds in (this.start, this.their_start)),
        )
    return table


def percent(part: float | None) -> str:
    """A share in percent."""
    return "-" if part is None else f"{part:.1%}"
