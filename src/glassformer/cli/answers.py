"""Answers on standard output: a line each for people and programs, or a JSON object a line."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType

from glassformer.terminal import Terminal, print_json, print_line

if TYPE_CHECKING:
    from glassformer.tasks.predictor import Prediction

SHOWN = 40  # characters by which an input is known
WIDEST = 10_000  # columns of a file that nobody watches


@dataclass(frozen=True, kw_only=True, slots=True)
class Show:
    """How answers are shown.

    Attributes:
        abstain: Below this confidence there is no answer.
    """

    abstain: float | None = None
    as_json: bool = False

    def show(self, given: Any, found: "Prediction") -> None:
        """Print one answer."""
        if found.note:
            print_line(f"glassformer: {str(given)[:SHOWN]!r} {found.note}", stderr=True)
        if self.as_json:
            print_json(self._values(given, found), indent=None)
            return
        answer = "?" if self._abstains(found) else found.text
        print_line(answer, f"{found.confidence:.3f}")
        for renderable in found.below:
            show_below(renderable)

    def _abstains(self, found: "Prediction") -> bool:
        return self.abstain is not None and found.confidence < self.abstain

    def _values(self, given: Any, found: "Prediction") -> dict[str, Any]:
        values: dict[str, Any] = {"input": str(given), **found.as_values()}
        if self.abstain is not None:
            abstains = self._abstains(found)
            values |= {"abstained": abstains} | ({"prediction": None} if abstains else {})
        return values


def show_below(renderable: RenderableType) -> None:
    """A line, its cells, or what rich draws; where nobody watches, as wide as it needs to be."""
    if isinstance(renderable, str):
        print_line(*renderable.split("\t"))
        return
    terminal = Terminal()
    if not terminal.is_terminal:
        terminal = Terminal(width=WIDEST, color_system=None)
    terminal.print(renderable, soft_wrap=True)
