"""`glassformer predict` and `evaluate`: using a run."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.config.training import DEVICE_NAMES
from glassformer.errors import GlassformerError, printable

if TYPE_CHECKING:
    from glassformer.runs.run import Run
    from glassformer.tasks.job import Prediction

AT_ONCE = 1 << 16  # bytes taken from standard input before answering
MOST_BYTES = 1 << 24
TOGETHER = 256  # texts of a file that are answered together

Device = Annotated[str, typer.Option(help=", ".join(DEVICE_NAMES))]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]


def predict(
    run: RunFolder,
    inputs: Annotated[
        list[str],
        typer.Argument(metavar="[INPUT...]", help="Texts; @FILE is a file; none means stdin."),
    ] = [],  # noqa: B006
    abstain: Annotated[
        float | None, typer.Option(min=0, max=1, help="No answer below this confidence.")
    ] = None,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line.")] = False,
) -> None:
    """Say what a run makes of texts: a line an input, the answer and its confidence.

    Example: glassformer predict runs/reviews "What a film"
    """
    from glassformer.runs.run import Run

    loaded = Run(run, device=device)
    _ = loaded.model  # what is wrong with it shows before anybody types
    chunks = _given(inputs, loaded) if inputs else _from_stdin()
    try:
        for texts in chunks:
            for text, found in zip(texts, loaded.predict_each(texts), strict=True):
                print(_line(text, found, abstain, as_json))
            sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _line(text: str, found: "Prediction", abstain: float | None, as_json: bool) -> str:
    """One answer; below the confidence asked for it is none."""
    unsure = abstain is not None and found.confidence < abstain
    if not as_json:
        return f"{'?' if unsure else printable(found.text)}\t{found.confidence:.3f}"
    values: dict[str, Any] = {"input": text, **found.as_values()}
    if abstain is not None:
        values |= {"abstained": unsure} | ({"prediction": None} if unsure else {})
    return json.dumps(values, ensure_ascii=False)


def evaluate(
    run: RunFolder,
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="Files or folders.")],
    against: Annotated[
        Path | None, typer.Option(metavar="RUN2", help="Another run to compare it with.")
    ] = None,
    columns: Annotated[str, typer.Option(metavar="text=...,label=...", help="Columns.")] = "",
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score a run on labelled data, each score with its interval.

    Example: glassformer evaluate runs/reviews test.csv --against runs/other
    """
    from glassformer.cli.results import show_evaluation
    from glassformer.data.columns import parse_columns
    from glassformer.runs.display import Display
    from glassformer.runs.run import Run

    ours = Run(run, device=device)
    other = None if against is None else Run(against, device=device)
    with Display().waiting("evaluating"):
        named = parse_columns(columns) if columns else None
        found = ours.evaluate(*data, against=other, columns=named)
    show_evaluation(found, ours, other, as_json=as_json)


def _given(inputs: Iterable[str], run: "Run") -> Iterator[list[str]]:
    """The texts of the command line, those of files in pieces."""
    for number, given in enumerate(inputs, start=1):
        if given.startswith("@") and given != "@":
            yield from _in_pieces(_from_file(Path(given[1:]), run))
        elif given.isascii() or given.encode(errors="ignore").decode() == given:
            yield [given]
        else:
            raise GlassformerError(f"text {number} is not UTF-8; send it as UTF-8, or as a file")


def _from_file(path: Path, run: "Run") -> Iterator[str]:
    """The lines of a text file, blank ones too, or the texts of a table's rows."""
    from glassformer.data.sources import read_rows
    from glassformer.data.sources.decoding import LONGEST_LINE, lines
    from glassformer.data.sources.formats import is_table

    encoding = run.config.data.encoding
    if not path.exists():
        raise GlassformerError(
            f"{path}: not found; check the path after @, or send a text that begins so through "
            f"standard input"
        )
    if path.is_dir() or is_table(path):
        yield from run.texts_of(read_rows(path, encoding=encoding))
        return
    for number, line in enumerate(lines(path, encoding, newline="\n"), start=1):
        if len(line) > LONGEST_LINE:
            raise _too_long(str(path), number, f"{LONGEST_LINE:,} characters")
        yield line.rstrip("\r\n")


def _in_pieces(texts: Iterator[str]) -> Iterator[list[str]]:
    while piece := list(islice(texts, TOGETHER)):
        yield piece


def _from_stdin() -> Iterator[list[str]]:
    """Whole lines as they arrive, so that a slow pipe is answered at once."""
    if sys.stdin.isatty():
        print("One text a line; end with Ctrl-D.", file=sys.stderr)
    handle, name = sys.stdin.fileno(), "standard input"
    rest, number = b"", 0
    while piece := os.read(handle, AT_ONCE):
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > MOST_BYTES:
            raise _too_long(name, number + len(lines) + 1, f"{MOST_BYTES:,} bytes")
        if lines:
            yield [_decoded(line, name, number + n) for n, line in enumerate(lines, 1)]
            number += len(lines)
    if rest:
        yield [_decoded(rest, name, number + 1)]


def _decoded(line: bytes, name: str, number: int) -> str:
    """A line as text, without the mark that some programs put before the first."""
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        return text.removesuffix("\r")
    except UnicodeDecodeError as error:
        raise GlassformerError(
            f"{name} line {number}: not UTF-8 (byte {line[error.start]:#04x}); save it as UTF-8"
        ) from None


def _too_long(name: str, number: int, most: str) -> GlassformerError:
    return GlassformerError(f"{name} line {number}: longer than {most}; break it into lines")
