"""Training speeds and the machine, as a table and as plain values."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from glassformer.benchmarks.report import AnyReport, empty_table, megabytes, times
from glassformer.benchmarks.training.works import Speed


class SpeedReport(AnyReport[Speed]):
    """The results of `glassformer bench train`."""

    legend = (
        "Real tokens per second in training. Ratio above 1: ours is faster. Low and high are the "
        "95 % interval. Start: seconds of the first ten steps."
    )

    def as_values(self) -> dict[str, Any]:
        found = [asdict(one) for results in self.sections.values() for one in results]
        return {"machine": self.machine, "notes": self.notes, "training": found}

    def tables(self) -> list[Table]:
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
