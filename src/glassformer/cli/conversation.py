"""Typed lines, answered one at a time; on a terminal with line editing and a history."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.cli.inputs import Placed
from glassformer.errors import GlassformerError
from glassformer.files import cache_folder
from glassformer.terminal import Terminal, print_line

if TYPE_CHECKING:
    from glassformer.cli.answers import Show
    from glassformer.runs.run import Run

REMEMBERED = 1000  # lines


def talk(run: "Run", answer: Callable[[Iterable[Placed]], None], shown: "Show") -> None:
    """Answer typed lines one at a time; an error does not end the conversation."""
    print_line(f"One {run.predictor.noun} per line; Ctrl-D to quit.", stderr=True)
    with line_reader(cache_folder() / "history") as typed_line:
        while True:
            try:
                answer([Placed("", run.predictor.parse(typed_line()))])
                shown.sum_up()
            except EOFError:
                print_line(stderr=True)
                return
            except GlassformerError as error:
                print_line(f"glassformer: {error}", stderr=True)


@contextmanager
def line_reader(history: Path) -> Iterator[Callable[[], str]]:
    """Reads the next typed line; EOFError says that there is none.

    On a terminal, lines are edited with the usual keys, and earlier ones come back with the up
    arrow, also those of another day.
    """
    readline = _readline()
    if readline is None:
        yield plain_line
        return
    with suppress(OSError):
        readline.read_history_file(history)
    try:
        yield edited_line
    finally:
        readline.set_history_length(REMEMBERED)
        with suppress(OSError):
            history.parent.mkdir(parents=True, exist_ok=True)
            readline.write_history_file(history)


def _readline() -> Any:
    """The library that edits lines; None without it, or where nobody would see them."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    try:
        return import_module("readline")
    except ImportError:  # as on Windows
        return None


def edited_line() -> str:
    """A line that was edited on the terminal."""
    try:
        line = input("> ")
        return line.encode().decode()
    except UnicodeError:
        raise GlassformerError("this line is not UTF-8; set the terminal to UTF-8") from None


def plain_line() -> str:
    """The next line of standard input; unlike `input`, it does not stop at a zero byte."""
    if sys.stdout.isatty():  # otherwise it would mix with the answers
        Terminal().print("> ", end="")
    line = sys.stdin.buffer.readline()
    if not line:
        raise EOFError
    try:
        return line.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise GlassformerError("this line is not UTF-8; set the terminal to UTF-8") from None
