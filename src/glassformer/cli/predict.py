"""`glassformer predict`: predictions of a run for new inputs."""

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.conversation import talk
from glassformer.cli.inputs import Placed, from_stdin, given_inputs
from glassformer.cli.job_options import given_options, with_job_options
from glassformer.cli.options import AsJson, Device, Int8, RunFolder
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
    device: Device = "auto",
    int8: Int8 = False,
    as_json: AsJson = False,
    **options: Any,
) -> None:
    """Predict with a run: one line per input, the answer and nothing else.

    An empty input has an empty answer; a language model starts a new text.

    Where nothing of an input was seen in training, the answer is ?.

    Example: glassformer predict runs/reviews "What a film"
    """
    from glassformer.cli.answers import Show
    from glassformer.runs.run import Run

    loaded = Run(run, device=device, int8=int8)
    given = given_options(options, loaded.config.job, inputs)
    given |= {"baseline": True} if baseline else {}
    loaded.configured(**given)  # bad options and a bad model
    _ = loaded.model  # fail before anything is typed
    shown = Show(abstain=abstain, confidence=confidence, as_json=as_json)
    answer = partial(_answer, loaded, given, shown)
    if not inputs and sys.stdin is None:
        raise GlassformerError(
            "standard input is closed; give an input or @FILE, or pipe inputs in"
        )
    if not inputs and sys.stdin.isatty():
        talk(loaded, answer, shown)
        return
    for placed in given_inputs(inputs, loaded) if inputs else from_stdin(loaded):
        answer(placed)
    shown.sum_up()


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

    ahead = _ReadAhead(inputs)
    try:
        for found in run.predict_partly(ahead, **options):
            if isinstance(found, Partial):
                shown.show_partial(found)
            else:
                yield ahead.waiting.popleft()[1], found
    except GlassformerError as error:
        if len(ahead.waiting) == 1 and not ahead.failed:
            raise _located(ahead.waiting[0][0], error) from None
        for where, given in ahead.waiting:
            yield given, _answer_to(run, options, where, given)
        raise


class _ReadAhead:
    """Inputs that are read before they are answered.

    Attributes:
        waiting: Those that are not answered yet.
        failed: Whether the next one could not be read.
    """

    def __init__(self, inputs: Iterable[Placed]) -> None:
        self.inputs, self.failed = inputs, False
        self.waiting: deque[Placed] = deque()

    def __iter__(self) -> Iterator[Any]:
        try:
            for placed in self.inputs:
                self.waiting.append(placed)
                yield placed[1]
        except GlassformerError:
            self.failed = True
            raise


def _answer_to(run: "Run", options: Options, where: str, given: Any) -> "Prediction":
    """The prediction for one input; an error names the input."""
    try:
        return next(run.predict_each([given], **options))
    except GlassformerError as error:
        raise _located(where, error) from None


def _located(where: str, error: GlassformerError) -> GlassformerError:
    return GlassformerError(f"{where}: {error}") if where else error
