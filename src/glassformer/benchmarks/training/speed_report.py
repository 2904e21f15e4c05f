"""Training speeds and the machine, as a table and as plain values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from rich.table import Table

from glassformer.benchmarks.report import empty_table, megabytes, times
from glassformer.benchmarks.training.works import Speed


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
        """One row per peer."""
        found = [one for results in self.sections.values() for one in results]
        return [speed_table(found)] if found else []


def speed_table(results: Sequence[Speed]) -> Table:
    """Ours and theirs side by side."""
    speeds = ("tokens/s", "theirs", "ratio", "low", "high", "bar", "aim")
    others = ("of peak", "theirs", "MB", "theirs", "start", "theirs")
    table = empty_table("Training", ("work", "against"), (*speeds, *others))
    for this, following in zip(results, [*results[1:], None], strict=True):
        table.add_row(
            f"{this.work}, {this.case}",
            this.theirs,
            f"{this.speed.ours:,.0f}",
            f"{this.speed.theirs:,.0f}",
            *map(times, (this.speed.ratio, this.speed.low, this.speed.high, this.bar, this.aim)),
            *map(percent, (this.peak_share, this.their_peak_share)),
            *map(megabytes, (this.memory, this.their_memory)),
            *(f"{seconds:.1f}" for seconds in (this.start, this.their_start)),
            end_section=following is None or following.work != this.work,
        )
    return table


def percent(part: float | None) -> str:
    """A share in percent."""
    return "-" if part is None else f"{part:.1%}"
