"""What a person sees while something takes time, on standard error.

In a terminal a bar moves; in a log file a line appears now and then; `quiet` says nothing.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from glassformer import processes
from glassformer.files import send_nowhere
from glassformer.terminal import Terminal
from glassformer.training.setup import Event, Step, Trouble, Validation

LINE_EVERY = 10.0  # seconds between lines of a log
BYTE_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB", "ZB")


class Lasting(Terminal):
    """Says nothing more once nobody reads; what it speaks of goes on."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        send_nowhere(self.file)  # others write there, too


class Display:
    """Says things and shows progress.

    Args:
        quiet: Say nothing.
    """

    def __init__(self, *, quiet: bool = False, console: Terminal | None = None) -> None:
        self.quiet = quiet or not processes.is_first()
        self.console = console or Lasting(stderr=True)

    @property
    def moves(self) -> bool:
        """Whether someone watches a terminal where a bar can move."""
        return self.console.is_terminal and not self.quiet

    def say(self, sentence: str) -> None:
        """One line."""
        if not self.quiet:
            self.console.say(sentence)

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int], None]]:
        """For work of unknown length: a count that rises."""
        if not self.moves:
            yield lambda count: None
            return
        columns = SpinnerColumn(), TextColumn(f"{what}: {{task.completed:,}}"), TimeElapsedColumn()
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task(what, total=None)
            yield lambda count: progress.update(task, completed=count)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """For work that says nothing of how far it is."""
        with self.console.status(what) if self.moves else nullcontext():
            yield

    def follow(self, events: Iterator[Event], steps: int, what: str) -> Iterator[Event]:
        """The same events, shown as they pass."""
        shown = self._bar(events, steps, what) if self.moves else self._lines(events, steps, what)
        yield from events if self.quiet else shown

    def _bar(self, events: Iterator[Event], steps: int, what: str) -> Iterator[Event]:
        columns = (
            TextColumn(what),
            BarColumn(),
            TextColumn("{task.completed:,}/{task.total:,}  {task.fields[said]}"),
        )
        left = TimeLeft(steps)
        with Progress(*columns, console=self.console, transient=True) as progress:
            task = progress.add_task(what, total=steps, said="")
            for event in events:
                if isinstance(event, Step):
                    progress.update(task, completed=event.step, said=left.said(event))
                else:
                    self.say(told(event))
                yield event

    def _lines(self, events: Iterator[Event], steps: int, what: str) -> Iterator[Event]:
        left, last = TimeLeft(steps), 0.0
        for event in events:
            if not isinstance(event, Step):
                self.say(told(event))
            elif time.monotonic() - last > LINE_EVERY or event.step == steps:
                self.say(f"{what} {event.step:,}/{steps:,}  {left.said(event)}")
                last = time.monotonic()
            yield event


class TimeLeft:
    """How fast it goes, and how long is left."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.first: tuple[int, float] | None = None

    def said(self, event: Step) -> str:
        """Loss, rate, tokens a second and time left, in one line."""
        self.first = self.first or (event.step, time.monotonic())
        done, spent = event.step - self.first[0], time.monotonic() - self.first[1]
        left = f"  {clock(spent / done * (self.steps - event.step))} left" if done else ""
        return (
            f"loss {event.loss:.3f}  lr {event.lr:.1e}  "
            f"{event.tokens_per_second:,.0f} tokens/s{left}"
        )


def told(event: Validation | Trouble) -> str:
    """A validation as a line of a table: its columns stand under each other; trouble in words."""
    if isinstance(event, Trouble):
        return f"step {event.step:>7,}  {event.what}"
    scores = "  ".join(f"{name} {value:<7.4f}" for name, value in event.scores.items())
    best = "best so far" if event.best else ""
    return f"step {event.step:>7,}  validation  {scores}  {best}".rstrip()


def clock(seconds: int | float) -> str:
    """A duration as people say it.

    >>> clock(75), clock(3700), clock(0.4)
    ('1m15s', '1h01m', '0s')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def in_bytes(count: int | float) -> str:
    """Bytes as people say them.

    >>> in_bytes(999), in_bytes(1_530_000), in_bytes(51e12)
    ('999 bytes', '1.5 MB', '51 TB')
    """
    size, unit = float(count), 0
    while size >= 999.5 and unit < len(BYTE_UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.{1 if size < 10 and unit else 0}f} {BYTE_UNITS[unit]}"
