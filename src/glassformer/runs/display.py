"""Progress output on standard error.

A progress bar in a terminal, a line now and then in a log file, nothing with `quiet`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from glassformer import processes
from glassformer.errors import worded
from glassformer.files import send_nowhere
from glassformer.terminal import Terminal
from glassformer.training.setup import Event, Note, Step, Trouble, Validation

LINE_EVERY = 10.0  # seconds between lines of a log
SOON = 1.0  # seconds of work that needs no bar
BYTE_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB", "ZB")


Done = Callable[[int, int], None]  # told how many parts of some work are done, of how many


def done_unseen(done: int, total: int) -> None:
    """Show nothing."""


class ProgressTerminal(Terminal):
    """Falls silent when its reader goes away; the work continues."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        send_nowhere(self.file)  # other code writes there, too


class Display:
    """Prints messages and shows progress.

    Args:
        quiet: Suppress all output.
    """

    def __init__(self, *, quiet: bool = False, console: Terminal | None = None) -> None:
        self.quiet = quiet or not processes.is_first()
        self.console = console or ProgressTerminal(stderr=True)
        self.has_bar = False

    @property
    def moves(self) -> bool:
        """Whether there is a terminal to show a moving bar in."""
        return self.console.is_terminal and not self.quiet

    def say(self, sentence: str) -> None:
        """Print one line."""
        if not self.quiet:
            self.console.say(worded(sentence))

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int], None]]:
        """Show a rising count, for work of unknown length."""
        if not self.moves:
            yield lambda count: None
            return
        columns = SpinnerColumn(), TextColumn(f"{what}: {{task.completed:,}}"), TimeElapsedColumn()
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task(what, total=None)
            yield lambda count: progress.update(task, completed=count)

    @contextmanager
    def bar(self, what: str) -> Iterator[Done]:
        """Show how much of some work is done, and the time left, once it takes a second.

        Work that is part of other work with a bar has none of its own.
        """
        if not self.moves or self.has_bar:
            yield done_unseen
            return
        columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns, console=self.console, transient=True) as progress:
            task, began = progress.add_task(what, visible=False), time.monotonic()

            def show(done: int, total: int) -> None:
                late = time.monotonic() - began > SOON
                progress.update(task, completed=done, total=total, visible=late)

            self.has_bar = True
            try:
                yield show
            finally:
                self.has_bar = False

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Show a spinner, for work that reports no progress."""
        with self.console.status(what) if self.moves else nullcontext():
            yield

    def follow(
        self, events: Iterator[Event], steps: Callable[[], int], what: str
    ) -> Iterator[Event]:
        """Pass the events through, showing each.

        Args:
            steps: The number of all steps, which a time budget revises.
        """
        shown = self._bar(events, steps, what) if self.moves else self._lines(events, steps, what)
        yield from events if self.quiet else shown

    def _bar(self, events: Iterator[Event], steps: Callable[[], int], what: str) -> Iterator[Event]:
        columns = (
            TextColumn(what),
            BarColumn(),
            TextColumn("{task.completed:,}/{task.total:,}  {task.fields[status]}"),
        )
        left = TimeLeft(steps)
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task(what, total=steps(), status="")
            for event in events:
                if isinstance(event, Step):
                    status = left.line(event)
                    progress.update(task, completed=event.step, total=steps(), status=status)
                else:
                    self.say(event_line(event))
                yield event

    def _lines(
        self, events: Iterator[Event], steps: Callable[[], int], what: str
    ) -> Iterator[Event]:
        left, last = TimeLeft(steps), 0.0
        for event in events:
            if not isinstance(event, Step):
                self.say(event_line(event))
            elif time.monotonic() - last > LINE_EVERY or event.step == steps():
                self.say(f"{what} {event.step:,}/{steps():,}  {left.line(event)}")
                last = time.monotonic()
            yield event


class TimeLeft:
    """Training speed and remaining time."""

    def __init__(self, steps: Callable[[], int]) -> None:
        self.steps = steps
        self.first: tuple[int, float] | None = None

    def line(self, event: Step) -> str:
        """Loss, learning rate, tokens per second and time left."""
        self.first = self.first or (event.step, time.monotonic())
        done, spent = event.step - self.first[0], time.monotonic() - self.first[1]
        left = f"  {clock(spent / done * (self.steps() - event.step))} left" if done else ""
        return (
            f"{event.loss_name} {event.loss:.3f}  lr {event.lr:.1e}  "
            f"{event.tokens_per_second:,.0f} tokens/s{left}"
        )


def event_line(event: Validation | Trouble | Note) -> str:
    """One line for a validation, in aligned columns, for trouble, or for a note."""
    if isinstance(event, Note):
        return event.text
    if isinstance(event, Trouble):
        return f"step {event.step:>7,}  {event.what}"
    scores = "  ".join(f"{name} {value:<7.4f}" for name, value in event.scores.items())
    best = "best so far" if event.best else ""
    return f"step {event.step:>7,}  validation  {scores}  {best}".rstrip()


def clock(seconds: int | float) -> str:
    """A duration for people to read.

    >>> clock(75), clock(3700), clock(0.4)
    ('1m15s', '1h01m', '0s')
    """
    total = round(seconds)
    if total < 60:
        return f"{total}s"
    if total < 3600:
        return f"{total // 60}m{total % 60:02d}s"
    return f"{total // 3600}h{total % 3600 // 60:02d}m"


def in_bytes(count: int | float) -> str:
    """A number of bytes for people to read.

    >>> in_bytes(999), in_bytes(1_530_000), in_bytes(51e12)
    ('999 bytes', '1.5 MB', '51 TB')
    """
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(BYTE_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.{1 if size < 10 and unit else 0}f} {BYTE_UNITS[unit]}"
