"""The command `glassformer`, as a function that takes arguments and returns an exit code.

    0    success
    1    an error the user can fix, in one line on standard error, or a claim that does not hold
    2    wrong usage
    130  interrupted by Ctrl-C; 143 by SIGTERM

To add a command, write one function under `@app.command()`, with a sentence of help and an example.
Import torch, and anything that imports it, inside the function, so that `--help` stays fast.
"""

import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.text import Text

from glassformer import __version__, processes
from glassformer.cli import bench, data, runs
from glassformer.cli.bench_features import bench_features
from glassformer.cli.bench_generate import generate
from glassformer.cli.bench_train import bench_train
from glassformer.cli.compare import compare
from glassformer.cli.demo import demo
from glassformer.cli.doctor import doctor
from glassformer.cli.evaluate import evaluate
from glassformer.cli.explain import explain
from glassformer.cli.output import watched_output
from glassformer.cli.plan import plan
from glassformer.cli.predict import predict
from glassformer.cli.reproduce import reproduce
from glassformer.cli.serve import serve
from glassformer.cli.train import resume, train
from glassformer.config.own_code import allow_code
from glassformer.errors import GlassformerError, at_command_line, is_out_of_memory, usable_paths
from glassformer.terminal import Terminal, print_line

ALLOW_CODE = "--allow-code"
app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
COMMANDS = (
    *(demo, doctor, train, plan, resume, predict, evaluate, explain, compare, reproduce, serve),
)
for command in COMMANDS:
    app.command()(command)
app.add_typer(runs.app, name="runs")
app.add_typer(data.app, name="data")
bench.app.command("features")(bench_features)
bench.app.command()(generate)
bench.app.command("train")(bench_train)
app.add_typer(bench.app, name="bench")


class Interrupted(BaseException):
    """Ctrl-C or SIGTERM arrived."""


@at_command_line()
def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    argv = allowed_first(sys.argv[1:] if argv is None else argv)
    try:
        with interruptible(), watched_output(), usable_paths():
            plain_flags(typer.main.get_command(app))(args=argv, prog_name="glassformer")
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
        reason = str(error).partition("\n")[0] or "MemoryError"
        print_line(
            f"glassformer: out of memory ({reason}); free some, raise the limit, or use "
            f"less data or a smaller model",
            stderr=True,
        )
        return 1
    return 0


def plain_flags(command: Any) -> Any:
    """The command, whose help shows flags without a type: they take no value."""
    for parameter in (*command.params, command.get_help_option(typer.Context(command))):
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        plain_flags(inner)
    return command


def allowed_first(argv: Sequence[str]) -> list[str]:
    """The arguments with --allow-code before the command, wherever it was typed.

    >>> allowed_first(["predict", "runs/walks", "--allow-code", "--", "--allow-code"])
    ['--allow-code', 'predict', 'runs/walks', '--', '--allow-code']
    """
    end = argv.index("--") if "--" in argv else len(argv)
    options = [one for one in argv[:end] if one != ALLOW_CODE]
    return [ALLOW_CODE] * (len(options) < end) + options + list(argv[end:])


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C and SIGTERM raise an exception that no library swallows."""
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


def _print_version(requested: bool) -> bool:
    if requested:
        print_line(f"glassformer {__version__}")
        raise typer.Exit
    return requested


@app.callback()
def glassformer(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_print_version, is_eager=True
        ),
    ] = False,
    own_code: Annotated[
        bool,
        typer.Option(
            ALLOW_CODE, help="Import code that settings name, such as a frontend of your own."
        ),
    ] = False,
) -> None:
    """Train Transformers from scratch on your own data, run them fast, and look inside."""
    allow_code(own_code)


@app.command()
def mask(
    expression: Annotated[
        str, typer.Argument(metavar="EXPRESSION", help="Rules, combined with & and |.")
    ],
    size: Annotated[
        int, typer.Option(min=1, max=128, help="Number of queries and keys to draw.")
    ] = 8,
) -> None:
    """Draw which keys each query may see: one row per query, one column per key.

    Rules: causal, everything, window(3), prefix(3), documents([3, 2]), valid_lengths([[1, 3, 2]]).

    Example: glassformer mask "causal & window(3)"
    """
    from glassformer.cli.mask_expression import parse
    from glassformer.core.layout import Layout

    rule, square = parse(expression), Layout.full(1, size)
    try:
        rule.table(square, square)
    except ValueError as error:
        raise GlassformerError(f"{error}; or lower --size") from None
    picture, console = rule.picture(size), Terminal()
    if (
        not console.is_terminal
        or not console.encoding.startswith("utf")
        or console.width < 2 * size
    ):
        for line in picture.splitlines():
            print_line(line)
        return
    console.print(Text(picture.replace("#", "██").replace(".", "░░"), style="cyan"))
    console.print(Text(f"{rule}: one row per query, one column per key", style="dim"))
