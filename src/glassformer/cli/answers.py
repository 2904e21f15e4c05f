"""Predictions on standard output: one line or one JSON object each.

What is known of one before it is complete is shown at once: its text so far, or, on a terminal, how
much of the input was read.
"""

import sys
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.progress import BarColumn, Progress, TaskProgressColumn, TimeRemainingColumn

from glassformer.terminal import Terminal, print_json, print_line, print_piece

if TYPE_CHECKING:
    from glassformer.tasks.predictor import Partial, Prediction

SHOWN = 40  # characters of an input quoted in a note
WIDEST = 10_000  # columns when the output is not a terminal


@dataclass(kw_only=True, slots=True)
class Show:
    """How predictions are shown.

    Attributes:
        abstain: Confidence below which no answer is given.
        confidence: Whether each line has the confidence of its answer.
        shown: How many were shown.
        reasons: Why there was no answer, for each input of which nothing was seen in training.
        empty: How many were shown to empty inputs.
        begun: Whether some of the text of the next prediction was printed.
        bar: How much of the next input was read.
    """

    abstain: float | None = None
    confidence: bool = False
    as_json: bool = False
    shown: int = 0
    reasons: list[str] = field(default_factory=list)
    empty: int = 0
    begun: bool = False
    bar: Progress | None = None

    def show_partial(self, partial: "Partial") -> None:
        """Show at once what is known of the next prediction."""
        if partial.done is not None:
            self._advance(partial.done)
        if not partial.text or self.abstain is not None:  # a doubtful text is not shown at all
            return
        if self.as_json:
            if partial.details:  # the text alone is in the prediction, too
                print_json(partial.as_values(), indent=None)
        else:
            print_piece(partial.text)
            self.begun = True

    def _advance(self, done: float) -> None:
        if self.bar is None:
            terminal = Terminal(stderr=True)
            if not terminal.is_terminal:
                return
            columns = (BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=terminal, transient=True)
            self.bar.add_task("", total=1.0)
            self.bar.start()
        self.bar.update(self.bar.task_ids[0], completed=done)

    def end(self) -> None:
        """No more is shown: a line that has begun ends."""
        self._end_bar()
        if self.begun:
            print_line()
        self.begun = False

    def _end_bar(self) -> None:
        if self.bar is not None:
            self.bar.stop()
        self.bar = None

    def show(self, given: Any, prediction: "Prediction") -> None:
        """Print one prediction; the caller flushes standard output."""
        self._end_bar()
        begun = self.begun
        self.count(prediction)
        if not begun:
            self._remark(given, prediction)
        if self.as_json:
            print_json(self.values(given, prediction), indent=None, flush=False)
        else:
            self._answer(prediction)
        if begun:  # a remark would break its line
            self._remark(given, prediction)

    def count(self, prediction: "Prediction") -> None:
        """Count a prediction, and what its input lacks."""
        self.shown += 1
        self.reasons += [prediction.reason] * prediction.unknown
        self.empty += prediction.empty

    def sum_up(self) -> None:
        """Say how many inputs have no answer and why, and start counting again."""
        for reason, count in Counter(self.reasons).items():
            to = f" to {count:,} of {self.shown:,} inputs" if self.shown > 1 else ""
            sys.stdout.flush()
            print_line(
                f"glassformer: no answer (?){to}: {reason}; --json has the model's guess",
                stderr=True,
            )
        if self.empty:
            of = f"{self.empty:,} of {self.shown:,} inputs" if self.shown > 1 else "the input"
            sys.stdout.flush()
            print_line(f"glassformer: empty, and so without an answer: {of}", stderr=True)
        self.shown, self.empty, self.reasons = 0, 0, []

    def _remark(self, given: Any, prediction: "Prediction") -> None:
        if prediction.note:
            sys.stdout.flush()
            print_line(f"glassformer: {str(given)[:SHOWN]!r} {prediction.note}", stderr=True)

    def _answer(self, prediction: "Prediction") -> None:
        """One line, or the rest of one that has begun."""
        text, unknown = ("", " ?") if self.begun else (prediction.text, "?")
        self.begun = False
        answer = unknown if text is None or self._abstains(prediction) else text
        sure = [f"{prediction.confidence:.3f}", prediction.evidence] if self.confidence else []
        print_line(answer, *filter(None, sure), flush=False)
        for renderable in prediction.below:
            show_below(renderable)

    def _abstains(self, prediction: "Prediction") -> bool:
        unsure = self.abstain is not None and prediction.confidence < self.abstain
        return prediction.unknown or (unsure and not prediction.empty)

    def values(self, given: Any, prediction: "Prediction") -> dict[str, Any]:
        """An input and its prediction, for JSON."""
        values: dict[str, Any] = {
            "input": "" if given is None else str(given),
            **prediction.as_values(),
        }
        abstains = self._abstains(prediction)
        if self.abstain is not None:
            values["abstained"] = abstains
        return values | ({"prediction": None} if abstains else {})


def show_below(renderable: RenderableType) -> None:
    """Print cells or a rich renderable, at full width when the output is not a terminal."""
    if isinstance(renderable, str):
        print_line(*renderable.split("\t"))
        return
    terminal = Terminal()
    if not terminal.is_terminal:
        terminal = Terminal(width=WIDEST, color_system=None)
    terminal.print(renderable, soft_wrap=True)
