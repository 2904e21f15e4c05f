"""`glassformer predict`: predictions of a run for new inputs."""

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.conversation import talk
from glassformer.cli.inputs import (
    Placed,
    ReadAhead,
    Reading,
    answer_to,
    from_stdin,
    given_inputs,
    located,
)
from glassformer.cli.job_options import given_options, with_job_options
from glassformer.cli.options import AsJson, Device, Header, Int8, RunFolder
from glassformer.errors import GlassformerError

if TYPE_CHECKING:
    from glassformer.cli.answers import Show
    from glassformer.runs.run import Run
    from glassformer.tasks.predictor import Prediction

Options = dict[str, Any]


@with_job_options
def predict(
    run: RunFolder,
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Inputs of the job, such as texts; @FILE reads a file; none reads stdin.",
        ),
    ] = [],  # noqa: B006
    abstain: Annotated[
        float | None, typer.Option(min=0, max=1, help="Give no answer below this confidence.")
    ] = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Show the confidence of every answer, too.")
    ] = False,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Answer with the baseline instead of the model.")
    ] = False,
    columns: Annotated[
        str,
        typer.Option(
            metavar="ROLE=COLUMN",
            help="The column to read from a table, such as text=review; default: as in training.",
        ),
    ] = "",
    header: Header = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="F.csv",
            help="Write answers beside the rows they answer: .csv, .tsv, .jsonl or .parquet.",
        ),
    ] = None,
    embed: Annotated[
        bool,
        typer.Option(
            "--embed", help="Print vectors of texts instead, or write them, also as .npy."
        ),
    ] = False,
    device: Device = "auto",
    int8: Int8 = False,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Predict with a run: one line per input, the answer and nothing else.

    An empty input has an empty answer; a language model starts a new text.

    Where nothing of an input was seen in training, the answer is ?.

    Example: glassformer predict runs/reviews "What a film"

    Example: glassformer predict runs/reviews @new.csv --out answers.csv
    """
    from glassformer.cli.answer_files import AnswerFile, write_answers, write_vectors
    from glassformer.cli.answers import Show
    from glassformer.runs.run import Run

    file = None if out is None else AnswerFile(out, paths_in(inputs), vectors=embed)
    loaded = Run(run, device=device, int8=int8)
    given = given_options(options, loaded.config.job, inputs)
    given |= {"baseline": True} if baseline else {}
    if embed:
        idle = {**given, "confidence": confidence, "abstain": abstain is not None}
        refuse_with("--embed", [name for name, chosen in idle.items() if chosen])
        refuse_with("--out", ["json"] if as_json and file else [])
        reading = Reading(columns=columns, header=header)
        placed = placed_inputs(loaded, inputs, reading)
        write_vectors(loaded, chain.from_iterable(placed), file)
        return
    if file is not None:
        refuse_with("--out", [n for n, c in (("confidence", confidence), ("json", as_json)) if c])
    loaded.configured(**given)  # bad options and a bad model
    _ = loaded.model  # fail before anything is typed
    reading = Reading(columns=columns, header=header, options=given)
    shown = Show(abstain=abstain, confidence=confidence, as_json=as_json)
    if file is not None:
        placed = placed_inputs(loaded, inputs, reading)
        write_answers(loaded, given, shown, chain.from_iterable(placed), file)
        return
    answer = partial(_answer, loaded, given, shown)
    if not inputs and sys.stdin is not None and sys.stdin.isatty():
        talk(loaded, answer, shown)
        return
    for some in placed_inputs(loaded, inputs, reading):
        answer(some)
    shown.sum_up()


def placed_inputs(run: "Run", inputs: list[str], reading: Reading) -> Iterator[Iterable[Placed]]:
    """The inputs on the command line, or of standard input."""
    reading.refuse_without_table(inputs)
    if inputs:
        return given_inputs(inputs, run, reading)
    if sys.stdin is None:
        raise GlassformerError(
            "standard input is closed; give an input or @FILE, or pipe inputs in"
        )
    return from_stdin(run)


def refuse_with(option: str, idle: list[str]) -> None:
    """Refuse options that another one leaves without effect."""
    if idle:
        raise GlassformerError(
            f"{option} leaves --{idle[0].replace('_', '-')} without effect; leave it out"
        )


def paths_in(inputs: Iterable[str]) -> list[Path]:
    """The files among the inputs."""
    return [Path(given[1:]) for given in inputs if given.startswith("@")]


def _answer(run: "Run", options: Options, shown: "Show", inputs: Iterable[Placed]) -> None:
    """Show the prediction for each input, in order."""
    try:
        for given, found in _answered(run, options, shown, _awaited(inputs)):
            shown.show(given, found)
    finally:
        shown.end()
        sys.stdout.flush()


def _awaited(inputs: Iterable[Placed]) -> Iterator[Placed]:
    """The inputs; what is answered is out before the next one is awaited."""
    rest = iter(inputs)
    while (placed := next(rest, None)) is not None:
        yield placed
        sys.stdout.flush()


def _answered(
    run: "Run", options: Options, shown: "Show", inputs: Iterable[Placed]
) -> "Iterator[tuple[Any, Prediction]]":
    """Inputs with their predictions; the run reads ahead to batch inputs of similar length.

    If one of several fails, those read before it are still answered, one by one.
    """
    from glassformer.tasks.predictor import Partial

    ahead = ReadAhead(inputs)
    try:
        for found in run.predict_partly(ahead, **options):
            if isinstance(found, Partial):
                shown.show_partial(found)
            else:
                yield ahead.waiting.popleft().given, found
    except GlassformerError as error:
        if len(ahead.waiting) == 1 and not ahead.failed:
            raise located(ahead.waiting[0].where, error) from None
        for placed in ahead.waiting:
            yield placed.given, answer_to(run, options, placed)
        raise
