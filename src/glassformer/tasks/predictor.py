"""The predictor of a job: what an input is, and what a trained model predicts for it.

An input is whatever the job defines: a text, the path of a recording, a picture. It comes from
Python (`accept`), from the command line (`parse`) or from a row of a table (`from_sample`).
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

from rich.console import RenderableType
from torch import nn

from glassformer import notebook
from glassformer.config import require
from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.tasks.about import About

SHOWN = 5  # labels in a notebook

SomeTask = TypeVar("SomeTask")
Input = TypeVar("Input")


@dataclass(frozen=True, slots=True)
class Prediction:
    """One prediction, or an abstention: no text, a reason, and what the model would have guessed.

    Attributes:
        text: The prediction as text; None where there is no prediction.
        confidence: The model's confidence, from 0 to 1.
        details: Further values for JSON, such as the probability of every label.
        below: What a terminal shows below it: lines, or anything rich can draw.
        note: A remark about the input, such as that it was truncated.
        explanation: What the prediction is based on, if requested.
        empty: Whether the input was empty, and so is the text.
        unknown: Whether there is no prediction because nothing in the input was seen in training.
        reason: Why there is no prediction; empty where there is one.
        guess: What the model would have predicted, where there is no prediction.
        evidence: What validation rows say of answers like this one, in a sentence, if anything.
    """

    text: str | None
    confidence: float
    details: Mapping[str, Any]
    below: Sequence[RenderableType] = ()
    note: str = ""
    explanation: Any = None
    empty: bool = False
    unknown: bool = False
    reason: str = ""
    guess: "Prediction | None" = None
    evidence: str = ""

    def without_answer(self, reason: str) -> "Prediction":
        """No prediction, since nothing in the input was seen in training; this one is the guess.

        >>> Prediction("good", 0.9, {}).without_answer("no word of this text was seen in training")
        Prediction(None, no word of this text was seen in training; guess: 'good', 0.900)
        """
        guess = replace(self, note="")
        return Prediction(None, 0.0, {}, (), self.note, unknown=True, reason=reason, guess=guess)

    @property
    def best(self) -> str:
        """The text of the prediction, or of the guess where there is none."""
        return (self.guess or self).text or ""

    def __repr__(self) -> str:
        if self.guess is not None:
            guess = f"{self.guess.text!r}, {self.guess.confidence:.3f}"
            return f"Prediction(None, {self.reason}; guess: {guess})"
        marks = ["empty"] * self.empty
        return f"Prediction({', '.join([repr(self.text), f'{self.confidence:.3f}', *marks])})"

    def _repr_html_(self) -> str:
        """The notebook view: the text, the confidence, and what else is known."""
        if self.guess is not None:
            return notebook.abstention(self.reason, self.guess._repr_html_(), self.note)
        rows = [("confidence", f"{self.confidence:.3f}")]
        if self.evidence:
            rows.append(("validation", self.evidence))
        for name, value in self.details.items():
            scored = scored_names(value)
            if scored:
                first = [f"{key} {score:.3f}" for key, score in scored[:SHOWN]]
                rows.append((name, ", ".join(first + ["..."] * (len(scored) > SHOWN))))
            elif isinstance(value, str | int | float) and value != self.text:
                rows.append((name, str(value)))
        shown = notebook.table(self.text or "", rows) + notebook.paragraphs([self.note])
        if hasattr(self.explanation, "_repr_html_"):
            shown += self.explanation._repr_html_()
        return shown

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON; those of a guess are under a key of their own."""
        values: dict[str, Any] = {"prediction": self.text, "confidence": self.confidence}
        if self.guess is not None:
            values |= {"unknown": True, "reason": self.reason, "guess": self.guess.as_values()}
        if self.empty:
            values["empty"] = True
        return {**values, **self.details}


def scored_names(value: Any) -> list[tuple[str, float]]:
    """What is a list of names with a number each, the largest of a mapping first; else nothing.

    >>> scored_names({"bad": 0.2, "good": 0.8}), scored_names([{"text": "bad", "confidence": 0.2}])
    ([('good', 0.8), ('bad', 0.2)], [('bad', 0.2)])
    >>> scored_names({"model": {"good": 0.1}}), scored_names("good")
    ([], [])
    """
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, Sequence) and all(isinstance(one, Mapping) for one in value):
        pairs = [
            (one["text"], one["probability"]) if "probability" in one else tuple(one.values())
            for one in value
        ]
    else:
        return []
    if not all(len(pair) == 2 and isinstance(pair[1], float) for pair in pairs):
        return []
    mapping = isinstance(value, Mapping)
    return sorted(pairs, key=lambda pair: -pair[1]) if mapping else pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class Partial:
    """What is known of a prediction before it is complete.

    Attributes:
        text: What follows the text of those before it.
        done: The share of the input that was read, where its length is known.
        details: Further values for JSON.
    """

    text: str = ""
    done: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"text": self.text, **self.details}


class Predictor(ABC, Generic[SomeTask, Input]):
    """Predicts with an opened task.

    Attributes:
        kinds: Types of a single input from Python; anything else is treated as several inputs.
        noun: What one input is called.
        reads: The roles in the row of a table that make an input; by default all that are needed.
        blank: The input that an empty cell of a table is, if it is one.
    """

    kinds: ClassVar[tuple[type, ...]] = (str,)
    noun: ClassVar[str] = "text"
    reads: Sequence[str] = ()
    blank: Any = None

    def __init__(self, task: SomeTask) -> None:
        self.task = task

    @abstractmethod
    def predict(self, model: nn.Module, inputs: Iterable[Input]) -> Iterator[Prediction | Partial]:
        """Predictions in the order of the inputs, as soon as they are ready.

        One that takes long may be preceded by what is known of it so far.
        """

    def accept(self, value: Any) -> Input:
        """An input given from Python, refused if it has another type."""
        if not isinstance(value, self.kinds):
            raise GlassformerError(
                f"predict takes a {self.noun} or a list of {self.noun}s, got {value!r}; "
                f"give a {self.noun}"
            )
        return value  # type: ignore[return-value]

    def parse(self, typed: str) -> Input:
        """An input as it is typed: an argument of the command line, or a line of a file."""
        return self.accept(typed)

    @abstractmethod
    def from_sample(self, sample: Sample) -> Input:
        """The input in a row of a table."""

    def configured(self, **options: Any) -> "Predictor[SomeTask, Input]":
        """The same predictor with the options that the job's `About` declares."""
        return self

    def baseline(self) -> "Predictor[SomeTask, Input] | None":
        """A predictor that answers with the baseline in the run folder; None if there is none."""
        return None

    def example(self) -> str:
        """A placeholder for an input in an example command."""
        return "..."


class BaselinePredictor(Predictor[SomeTask, Input]):
    """Answers with the baseline that a run keeps; of the job's options it has one.

    Attributes:
        alternatives: How many other answers it shows.
    """

    alternatives = 0

    def configured(self, *, alternatives: int = 0, **options: Any) -> Any:
        """The same predictor with so many alternatives; other options are refused."""
        if options:
            raise GlassformerError(
                f"the baseline has no option {next(iter(options))}; leave it out, or leave out "
                f"--baseline"
            )
        require(alternatives >= 0, f"alternatives must be 0 or more, got {alternatives}")
        other = copy(self)
        other.alternatives = alternatives
        return other


def refuse_foreign_options(about: About, options: Mapping[str, Any]) -> None:
    """Refuse an option that the job does not declare."""
    own = [option.name for option in about.options]
    for name in options:
        if name not in own:
            if not own:
                raise GlassformerError(f"{about.name} has no options; leave out {name}")
            raise GlassformerError(
                f"{about.name} has no option {name}, only {', '.join(own)}; leave it out"
            )
