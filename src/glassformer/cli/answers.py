"""Predictions on standard output: one line or one JSON object each."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from glassformer.terminal import Terminal, print_json, print_line

if TYPE_CHECKING:
    from glassformer.tasks.predictor import Prediction

SHOWN = 40  # characters of an input quoted in a note
WIDEST = 10_000  # columns when the output is not a terminal


@dataclass(frozen=True, kw_only=True, slots=True)
class Show:
    """How predictions are shown.

    Attributes:
        abstain: Confidence below which no answer is given.
    """

    abstain: float | None = None
    as_json: bool = False

    def show(self, given: Any, prediction: "Prediction") -> None:
        """Print one prediction; the caller flushes standard output."""
        if prediction.note:
            sys.stdout.flush()
            print_line(f"glassformer: {str(given)[:SHOWN]!r} {prediction.note}", stderr=True)
        if self.as_json:
            print_json(self._values(given, prediction), indent=None, flush=False)
            return
        answer = "?" if self._abstains(prediction) else prediction.text
        print_line(answer, f"{prediction.confidence:.3f}", flush=False)
        for renderable in prediction.below:
            show_below(renderable)

    def _abstains(self, prediction: "Prediction") -> bool:
        return self.abstain is not None and prediction.confidence < self.abstain

    def _values(self, given: Any, prediction: "Prediction") -> dict[str, Any]:
        values: dict[str, Any] = {"input": str(given), **prediction.as_values()}
        if self.abstain is not None:
            abstains = self._abstains(prediction)
            values |= {"abstained": abstains} | ({"prediction": None} if abstains else {})
        return values


def show_below(renderable: RenderableType) -> None:
    """Print cells or a rich renderable, at full width when the output is not a terminal."""
    if isinstance(renderable, str):
        print_line(*renderable.split("\t"))
        return
    terminal = Terminal()
    if not terminal.is_terminal:
        terminal = Terminal(width=WIDEST, color_system=None)
    terminal.print(renderable, soft_wrap=True)
