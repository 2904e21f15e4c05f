"""The progress of a benchmark: a bar with the time left, outside of a terminal a sentence."""

from time import monotonic
from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from glassformer.terminal import Terminal

LONG = 120.0  # seconds left that are worth a sentence


class BenchProgress:
    """Shows on standard error how far a benchmark is.

    Args:
        total: How many measurements there are.
    """

    def __init__(self, total: int) -> None:
        self.console = Terminal(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self.task = self.bar.add_task("", total=total)
        self.total, self.done, self.started = total, 0, monotonic()
        self.told = self.console.is_terminal

    def __enter__(self) -> "BenchProgress":
        self.bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bar.stop()

    def begin(self, label: str) -> None:
        """Name the next measurement."""
        self.bar.update(self.task, description=label)

    def finish(self) -> None:
        """Count a measurement; if many are left, say once how long they take."""
        self.done += 1
        self.bar.advance(self.task)
        left = (monotonic() - self.started) / self.done * (self.total - self.done)
        if left > LONG and not self.told:
            self.told = True
            self.console.say(
                f"{self.done} of {self.total} measurements are done; the others take about "
                f"{left / 60:.0f} minutes, or longer. Ctrl-C stops and shows what there is."
            )
