"""`glassformer predict` and `evaluate`: using a run."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Columns
from glassformer.config.training import DEVICE_NAMES
from glassformer.config.values import Values, laid_over, parse_setting
from glassformer.errors import GlassformerError
from glassformer.terminal import Terminal, print_line

if TYPE_CHECKING:
    from glassformer.cli.answers import Show
    from glassformer.runs.run import Run
    from glassformer.tasks.job import Prediction
    from glassformer.tasks.shared.generation import Wish

Placed = tuple[str, str]  # a text, and before it where it stands; nothing where that is plain

AT_ONCE = 1 << 16  # bytes taken from standard input before answering
MOST_BYTES = 1 << 24

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
    alternatives: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="N other answers, with their scores.")
    ] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="The log-probability of every token.")
    ] = False,
    align: Annotated[
        bool, typer.Option("--align", help="What each word of the answer looked at.")
    ] = False,
    picture: Annotated[
        Path | None, typer.Option(metavar="F.png", help="Draw that for one text; .svg, .pdf too.")
    ] = None,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Answers begin with it.")] = "",
    required: Annotated[
        list[str],
        typer.Option("--with", metavar="WORD", help="Answers have the word; may repeat."),
    ] = [],  # noqa: B006
    forbidden: Annotated[
        list[str],
        typer.Option("--without", metavar="WORD", help="Answers avoid the word; may repeat."),
    ] = [],  # noqa: B006
    settings: Annotated[
        list[str], typer.Option("--set", metavar="decode.key=value", help="How answers are found.")
    ] = [],  # noqa: B006
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line.")] = False,
) -> None:
    """Say what a run makes of texts: a line an input, the answer and its confidence.

    Example: glassformer predict runs/reviews "What a film"
    """
    if picture is not None and (len(inputs) != 1 or inputs[0].startswith("@")):
        raise typer.BadParameter("--picture draws one text; give one INPUT, and no file")
    from glassformer.cli.answers import Show
    from glassformer.runs.run import Run
    from glassformer.tasks.shared.generation import Wish

    loaded = Run(run, device=device)
    shown = Show(
        abstain=abstain,
        scores=scores,
        align=align or picture is not None,
        picture=picture,
        as_json=as_json,
    )
    wish = Wish(
        decode=_of_decoding(settings),
        alternatives=alternatives,
        prefix=prefix,
        required=tuple(required),
        forbidden=tuple(forbidden),
    )
    if wish.decode.get("alternatives") and not (scores or as_json):
        raise typer.BadParameter("decode.alternatives shows in --scores or --json; add one of them")
    writes = wish != Wish() or shown.scores or shown.align
    if writes:
        loaded.job.as_wished(wish)  # what it cannot do, and what is wrong with it,
    shown.prepare(loaded)
    _ = loaded.model  # shows before anybody types
    answer = partial(_answer, loaded, wish if writes else None, shown)
    if not inputs and sys.stdin is None:
        raise GlassformerError("standard input is closed; give a text or @FILE, or send some texts")
    if not inputs and sys.stdin.isatty():
        _talk(answer)
        return
    for texts in _given(inputs, loaded) if inputs else _from_stdin():
        answer(texts)


def _answer(run: "Run", wish: "Wish | None", shown: "Show", texts: Iterable[Placed]) -> None:
    """Show the answer to each text, in order."""
    for text, found in _answered(run, wish, texts):
        shown.show(run, text, found)


def _answered(
    run: "Run", wish: "Wish | None", texts: Iterable[Placed]
) -> "Iterator[tuple[str, Prediction]]":
    """Texts and their answers; the run takes some ahead, to answer those of one length together.

    Those that it took before one that cannot be answered are answered all the same, one by one.
    """
    asked, said = tee(texts)
    try:
        for found in run.predict_each((text for _, text in asked), wish):
            yield next(said)[1], found
    except GlassformerError:
        for where, text in said:
            yield text, _answer_to(run, wish, where, text)
        raise


def _answer_to(run: "Run", wish: "Wish | None", where: str, text: str) -> "Prediction":
    """The answer to one text; where there is none, it is said which text that is."""
    try:
        found: Prediction = run.predict(text, wish)
    except GlassformerError as error:
        if not where:
            raise
        raise GlassformerError(f"{where}: {error}") from None
    return found


def _talk(answer: Callable[[Iterable[Placed]], None]) -> None:
    """Answer what is typed, a line at a time; a line that cannot be answered ends nothing."""
    print_line("One text a line; end with Ctrl-D.", stderr=True)
    prompt = "> " if sys.stdout.isatty() else ""  # else it would stand among the answers
    while True:
        Terminal().print(prompt, end="")
        try:
            answer([("", _typed())])
        except EOFError:
            print_line(stderr=True)
            return
        except GlassformerError as error:
            print_line(f"glassformer: {error}", stderr=True)


def _of_decoding(settings: Iterable[str]) -> Values:
    """The settings of decoding, the only ones that a trained run can be told anew."""
    values: Values = {}
    for setting in settings:
        parsed = parse_setting(setting)
        if not isinstance(parsed.get("decode"), dict):
            raise GlassformerError(
                f"--set {setting}: a trained run takes settings of decoding alone; "
                f"write for example --set decode.beam.width=8"
            )
        values = laid_over(values, parsed["decode"])
    return values


def evaluate(
    run: RunFolder,
    data: Annotated[list[str], typer.Argument(metavar="DATA...", help="Files or folders.")],
    against: Annotated[
        Path | None, typer.Option(metavar="RUN2", help="Another run to compare it with.")
    ] = None,
    columns: Columns = "",
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score a run on labelled data, each score with its interval.

    Example: glassformer evaluate runs/reviews test.csv --against runs/other
    """
    from glassformer.cli.results import show_evaluation
    from glassformer.runs.display import Display
    from glassformer.runs.run import Run

    ours = Run(run, device=device)
    other = None if against is None else Run(against, device=device)
    with Display().waiting("evaluating"):
        found = ours.evaluate(*data, against=other, columns=columns or None)
    show_evaluation(found, ours, other, as_json=as_json)


def _given(inputs: Iterable[str], run: "Run") -> Iterator[Iterable[Placed]]:
    """The texts of the command line, those of a file together."""
    for number, given in enumerate(inputs, start=1):
        if given.startswith("@") and given != "@":
            yield _from_file(Path(given[1:]), run)
        else:
            yield [("", _unicode(given, f"text {number}"))]


def _typed() -> str:
    """The next line that a person types, whatever is in it: `input` stops at a zero byte."""
    line = sys.stdin.buffer.readline()
    if not line:
        raise EOFError
    try:
        return line.decode().removesuffix("\n")
    except UnicodeDecodeError:
        raise GlassformerError("this line is not UTF-8; set the terminal to UTF-8") from None


def _unicode(text: str, name: str) -> str:
    """The text, refused where bytes that are no UTF-8 came in with it."""
    if text.isascii() or text.encode(errors="ignore").decode() == text:
        return text
    raise GlassformerError(f"{name} is not UTF-8; send it as UTF-8, or as a file")


def _from_file(path: Path, run: "Run") -> Iterator[Placed]:
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
        rows, same = tee(read_rows(path, encoding=encoding))
        yield from zip((row.where for row in same), run.texts_of(rows), strict=False)
        return
    for number, line in enumerate(lines(path, encoding, newline="\n"), start=1):
        if len(line) > LONGEST_LINE:
            raise _too_long(str(path), number, f"{LONGEST_LINE:,} characters")
        yield f"{path} line {number}", line.rstrip("\r\n")


def _from_stdin() -> Iterator[Iterable[Placed]]:
    """Whole lines as they arrive, so that a slow pipe is answered at once."""
    handle, name = sys.stdin.fileno(), "standard input"
    rest, number = b"", 0
    while piece := os.read(handle, AT_ONCE):
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield (_decoded(line, name, n) for n, line in enumerate(lines, number + 1))
            number += len(lines)
        if len(rest) > MOST_BYTES:
            raise _too_long(name, number + 1, f"{MOST_BYTES:,} bytes")
    if rest:
        yield [_decoded(rest, name, number + 1)]


def _decoded(line: bytes, name: str, number: int) -> Placed:
    """Where a line stands, and its text without the mark that may come before the first."""
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        return f"{name} line {number}", text.removesuffix("\r")
    except UnicodeDecodeError as error:
        raise GlassformerError(
            f"{name} line {number}: not UTF-8 (byte {line[error.start]:#04x}); save it as UTF-8"
        ) from None


def _too_long(name: str, number: int, most: str) -> GlassformerError:
    return GlassformerError(f"{name} line {number}: longer than {most}; break it into lines")
