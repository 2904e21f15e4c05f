"""Answers on standard output: a line each for people and programs, or a JSON object a line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glassformer.terminal import Terminal, print_json, print_line

if TYPE_CHECKING:
    from glassformer.explaining.alignment import Alignment
    from glassformer.runs.run import Run
    from glassformer.tasks.job import Prediction

SHOWN = 40  # characters by which a text is known
WIDEST = 10_000  # columns of a file that nobody watches


@dataclass(frozen=True, kw_only=True, slots=True)
class Show:
    """What is shown of an answer.

    Attributes:
        abstain: Below this confidence there is no answer.
        scores, align: Whether tokens with their scores, and alignments, are shown below it.
        picture: Where the alignment is drawn to.
    """

    abstain: float | None = None
    scores: bool = False
    align: bool = False
    picture: Path | None = None
    as_json: bool = False

    def prepare(self, run: "Run") -> None:
        """Refuse what cannot be shown, before anything is read."""
        if self.align:
            from glassformer.explaining.alignment import refuse_unaligned

            refuse_unaligned(run)
        if self.picture is not None:
            from glassformer.explaining.alignment_picture import check_picture

            check_picture(self.picture)

    def show(self, run: "Run", text: str, found: "Prediction") -> None:
        """Print one answer, and draw it."""
        if unread := found.details.get("unread"):
            told = f"{text[:SHOWN]!r} is too long: its last {unread:,} tokens were not read"
            print_line(f"glassformer: {told}", stderr=True)
        alignment = self._aligned(run, text, found)
        if self.as_json:
            print_json(self._values(text, found, alignment), indent=None)
        else:
            for cells in self._lines(found):
                print_line(*cells)
            if alignment is not None:
                show_alignment(alignment)
        if alignment is not None and self.picture is not None:
            from glassformer.explaining.alignment_picture import draw_alignment

            draw_alignment(alignment, self.picture)

    def _aligned(self, run: "Run", text: str, found: "Prediction") -> "Alignment | None":
        if not self.align:
            return None
        from glassformer.explaining.alignment import alignment_of

        return alignment_of(run, text, found)

    def _unsure(self, found: "Prediction") -> bool:
        return self.abstain is not None and found.confidence < self.abstain

    def _values(
        self, text: str, found: "Prediction", alignment: "Alignment | None"
    ) -> dict[str, Any]:
        values: dict[str, Any] = {"input": text, **found.as_values()}
        if self.abstain is not None:
            unsure = self._unsure(found)
            values |= {"abstained": unsure} | ({"prediction": None} if unsure else {})
        return values if alignment is None else values | {"alignment": alignment.as_values()}

    def _lines(self, found: "Prediction") -> list[tuple[str, ...]]:
        """The answer and its confidence; indented below it, what else is asked for."""
        said = "?" if self._unsure(found) else found.text
        others = [
            (f"  or {other['text']}", f"{other['confidence']:.3f}")
            for other in found.details.get("alternatives", ())
        ]
        below = _scored(found.details.get("tokens", ())) if self.scores else []
        return [(said, f"{found.confidence:.3f}"), *others, *((line,) for line in below)]


def _scored(tokens: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tokens and their scores in a line; with what could be said instead, a line a token."""
    if any(token.get("instead") for token in tokens):
        return [f"  {' or '.join(map(_said, (token, *_others(token))))}" for token in tokens]
    return [f"  {' | '.join(map(_said, tokens))}"] if tokens else []


def _others(token: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What was likeliest in the place of a token, without itself."""
    return [other for other in token["instead"] if other["id"] != token["id"]]


def _said(token: Mapping[str, Any]) -> str:
    """A token and its log-probability; its blanks can be seen."""
    return f"{token['piece'].replace(' ', '␣')} {token['log_probability']:.3f}"


def show_alignment(alignment: "Alignment") -> None:
    """The picture for a terminal; where nobody watches, as wide as it needs to be."""
    from glassformer.explaining.alignment_terminal import alignment_text

    console = Terminal()
    if console.is_terminal:
        console.print(alignment_text(alignment, console.width), soft_wrap=True)
    else:
        for line in alignment_text(alignment, WIDEST).plain.split("\n"):
            print_line(line)
