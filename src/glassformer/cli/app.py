"""The command `glassformer`, as a function that takes arguments and returns an exit code.

    0    fine
    1    an error the person can fix, in one line on standard error; a claim that does not hold
    2    wrong usage
    130  interrupted; 143 when the system ended it

To add a command, write one function under `@app.command()`, with a sentence of help and an example.
Import torch, and whatever imports it, inside the function: `--help` must answer at once.
"""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.text import Text

from glassformer import __version__, processes
from glassformer.cli import bench, data, runs
from glassformer.cli.doctor import doctor
from glassformer.cli.evaluate import evaluate
from glassformer.cli.output import watched_output
from glassformer.cli.plan import plan
from glassformer.cli.predict import predict
from glassformer.cli.reproduce import reproduce
from glassformer.cli.train import resume, train
from glassformer.errors import GlassformerError, is_out_of_memory
from glassformer.terminal import Terminal, print_line

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (doctor, train, plan, resume, predict, evaluate, reproduce):
    app.command()(command)
app.add_typer(runs.app, name="runs")
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")


class Interrupted(BaseException):
    """Someone pressed Ctrl-C, or the system wants the program to end."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return what the shell should see."""
    try:
        with interruptible(), watched_output():
            typer.main.get_command(app)(args=argv, prog_name="glassformer")
    except GlassformerError as error:
        if processes.is_first():
            print_line(f"glassformer: {error}", stderr=True)
        return 1
    except Interrupted as stop:
        if processes.is_first():
            print_line("glassformer: interrupted", stderr=True)
        return 128 + stop.args[0]
    except SystemExit as stop:
        return int(stop.code or 0)
    except (MemoryError, RuntimeError, ImportError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        said = str(error).partition("\n")[0] or "MemoryError"
        print_line(
            f"glassformer: the memory is not enough ({said}); free some, raise its limit, or work "
            f"with less data or a smaller model",
            stderr=True,
        )
        return 1
    return 0


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM raise what no library mistakes for an answer of the person."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise Interrupted(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_version(asked: bool) -> bool:
    if asked:
        print_line(f"glassformer {__version__}")
        raise typer.Exit
    return asked


@app.callback()
def glassformer(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Train Transformers from scratch on your own data, run them fast, and see inside."""


@app.command()
def mask(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help="Rules, combined with & and |.")
    ],
    size: Annotated[
        int, typer.Option(min=1, max=128, help="How many queries and keys to draw.")
    ] = 8,
) -> None:
    """Draw who may see whom: a line a query, a column a key.

    Rules: causal, everything, window(3), prefix(3), documents([3, 2]), valid_lengths([[1, 3, 2]]).

    Example: glassformer mask "causal & window(3)"
    """
    from glassformer.cli.mask_expression import parse
    from glassformer.core.layout import Layout

    rule, square = parse(expression), Layout.full(1, size)
    try:
        cells = rule.table(square, square)[0, 0].tolist()
    except ValueError as error:
        raise GlassformerError(f"{error}; or draw fewer with --size") from None
    console = Terminal()
    if not console.is_terminal or not console.encoding.startswith("utf"):
        for line in cells:
            print_line("".join("#" if seen else "." for seen in line))
        return
    console.print(_blocks(cells, console.width))
    console.print(Text(f"{rule}: a line a query, a column a key", style="dim"))


def _blocks(cells: list[list[bool]], width: int) -> Text:
    """Cells that look square: two characters each, or half a character where those do not fit."""
    size = len(cells)
    if 2 * size <= width:
        dark, light = ("██", "cyan"), ("░░", "dim")
        return Text("\n").join(
            Text.assemble(*(dark if seen else light for seen in line)) for line in cells
        )
    if size > width:
        raise GlassformerError(
            f"a picture of {size} does not fit a terminal of {width} columns; use --size {width}"
        )
    if size % 2:
        cells = [*cells, [False] * size]
    halves = {(True, True): "█", (True, False): "▀", (False, True): "▄", (False, False): " "}
    pairs = zip(cells[::2], cells[1::2], strict=True)
    lines = ("".join(map(halves.__getitem__, zip(*pair, strict=True))) for pair in pairs)
    return Text("\n".join(lines), style="cyan")
