"""The labels of a classifier: their names, how often each occurs, and the temperature."""

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Shaped

from glassformer.config import require
from glassformer.config.values import fitting
from glassformer.data.arrays import map_numbers
from glassformer.data.rows import listed
from glassformer.data.samples import SPLITS, Sample, Samples
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.metrics.classification import THRESHOLD
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.shared.lazy_details import LazyDetails
from glassformer.tasks.shared.text_data import SEPARATORS
from glassformer.wording import counted

MANY = 1000  # labels; more usually means free text in the wrong column

WHOLE = 0.9  # of the pieces of fields with several labels are the only label of other rows
SEVERAL = 0.01  # of the rows, at least two, have several labels, or a separator is an accident
MOST_FIELDS = 100_000  # different ones, to search for a separator

QUANTITIES = 20  # different numbers as labels; more are no grades
NEARLY_ALL_NUMBERS = 0.95  # of the different labels
NUMBER = re.compile(r"[$€£¥]?\s*([-+]?(?:\d+(?:[.,]\d*)*|[.,]\d+))\s*[%$€£¥]?")

Details = Mapping[str, Any]
Extend = Callable[[int, Details], Details]


@runtime_checkable
class LabelSettings(Protocol):
    """Settings of the labels."""

    separator: str | None
    multi_label: bool | None
    rarest: int


class LabelDetails(LazyDetails):
    """A label and the probability of every label, which are listed when somebody looks at them."""

    __slots__ = ("chances", "label", "names")

    def __init__(self, label: str, names: Sequence[str], chances: Float[np.ndarray, " C"]) -> None:
        super().__init__(("label", "probabilities"))
        self.label, self.names, self.chances = label, names, chances

    def find(self, name: str) -> Any:
        if name == "label":
            return self.label
        return dict(zip(self.names, self.chances.tolist(), strict=True))


@dataclass(frozen=True)
class Labels:
    """Names in alphabetical order; their indices are the model's classes.

    Attributes:
        counts: Rows of each label in the training split.
        rows: Rows in the training split.
        multi: Whether a text has any number of labels.
        separator: What separates several labels in one field.
        temperature: What logits are divided by, so that confidences are calibrated.
        threshold: From which probability on a label is predicted, where a text has any number of
            them; 0.5 in runs of earlier versions.
        baseline_threshold: That of the run's baseline.
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    rows: int
    multi: bool
    separator: str | None = None
    temperature: float = 1.0
    threshold: float = THRESHOLD
    baseline_threshold: float = THRESHOLD

    def __post_init__(self) -> None:
        require(
            len({*self.names}) == len(self.names) > 1, "names must be two or more, all distinct"
        )
        require(len(self.counts) == len(self.names), "there must be one count per name")
        require(min(*self.counts, self.rows) >= 0, "counts and rows must be 0 or more")
        require(
            0 < self.temperature < math.inf,
            f"temperature must be a number above 0, got {self.temperature}",
        )
        for threshold in (self.threshold, self.baseline_threshold):
            require(0 < threshold < 1, f"threshold must lie between 0 and 1, got {threshold}")

    @classmethod
    def learn(cls, samples: Samples, settings: LabelSettings) -> "Labels":
        """The labels in the data, refused if they cannot be learned."""
        separator = settings.separator or found_separator(samples, settings)
        first: dict[str, int] = {}  # the row that has it first
        seen: Counter[str] = Counter()
        learned: Counter[str] = Counter()
        multi = bool(settings.multi_label or separator)
        to_learn = (samples.splits == SPLITS.index("train")).tolist()
        for row, value in enumerate(samples.values("label")):
            multi = multi or isinstance(value, list)
            known = isinstance(value, str) and not separator and value in first  # nearly always
            for name in [value] if known else dict.fromkeys(names_of(value, separator)):
                if name not in first:
                    first[name] = row
                    refuse_too_many(first, samples)
                seen[name] += 1
                learned[name] += to_learn[row]
        refuse_too_few(seen, first, settings.rarest, samples)
        ordered = tuple(sorted(seen))
        counts = tuple(learned[name] for name in ordered)
        return cls(ordered, counts, len(samples.rows("train")), multi, separator)

    def numbers(
        self, samples: Samples, left_out: Container[int] = ()
    ) -> Shaped[np.ndarray, " N"] | Shaped[np.ndarray, "N C"]:
        """The index of each sample's label; for multi-label, a 0 or 1 for every label.

        Args:
            left_out: Samples whose labels do not matter.
        """
        values = enumerate(samples.values("label"))
        if not self.multi:
            known = self._numbers
            only = (
                known[value]
                if isinstance(value, str) and value in known
                else 0
                if row in left_out
                else self._only(value, row, samples)
                for row, value in values
            )
            return np.fromiter(only, dtype=np.int64, count=len(samples))
        table = np.zeros((len(samples), len(self.names)), dtype=np.uint8)
        for row, value in values:
            if row not in left_out:
                table[row, self._known(value, row, samples)] = 1
        return table

    def unknown(self, samples: Samples) -> dict[int, list[str]]:
        """The labels that are not known from training, by sample."""
        found = {}
        for row, value in enumerate(samples.values("label")):
            if isinstance(value, str) and value in self._numbers:
                continue
            names = [one for one in names_of(value, self.separator) if one not in self._numbers]
            if names:
                found[row] = names
        return found

    def open_numbers(
        self, path: Path, samples: int
    ) -> Shaped[np.ndarray, " N"] | Shaped[np.ndarray, "N C"]:
        """What `numbers` returned for this many samples, from a file."""
        classes = len(self.names)
        if self.multi:
            return map_numbers(path, (samples, classes), below=2)
        return map_numbers(path, (samples,), below=classes)

    def _only(self, value: Any, row: int, samples: Samples) -> int:
        """The index of a sample's only label."""
        known = self._known(value, row, samples)
        if len(known) != 1:
            raise GlassformerError(
                f"{samples[row]['where']}: {len(known)} labels, but the model expects one per "
                f"text; keep one, or train with --set task.multi_label=true"
            )
        return known[0]

    def _known(self, value: Any, row: int, samples: Samples) -> list[int]:
        """The indices of a sample's labels, all of which must be known from training."""
        found = names_of(value, self.separator)
        for name in found:
            if name not in self._numbers:
                raise GlassformerError(
                    f"{samples[row]['where']}: label {name[:40]!r} is unknown to the model, whose "
                    f"labels are {listed(self.names)}; fix the row, or train on rows with this "
                    f"label"
                )
        return [self._numbers[name] for name in found]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def weights(self) -> Float[np.ndarray, " C"]:
        """The weight of a row of each label, so that all labels have the same total weight.

        For multi-label, the weight of having a label, so that having it and lacking it have the
        same total weight.
        """
        counts = np.maximum(np.array(self.counts, dtype=np.float32), 1)
        if self.multi:
            return np.maximum(self.rows - counts, 1) / counts
        return counts.sum() / (len(counts) * counts)

    def predictions(
        self,
        probabilities: Float[np.ndarray, "N C"],
        alternatives: int = 0,
        extend: Extend | None = None,
        *,
        baseline: bool = False,
    ) -> Iterator[Prediction]:
        """The predictions for the probabilities of some texts.

        Args:
            baseline: Whether they are those of the baseline, which has a threshold of its own.
            alternatives: How many of the next likely labels to show with each.
            extend: Adds to the details of each; it is given the number of the text.
        """
        threshold = self.baseline_threshold if baseline else self.threshold
        for found in self._predictions(probabilities, extend, threshold):
            yield self._with_others(found, alternatives) if alternatives else found

    def _with_others(self, found: Prediction, count: int) -> Prediction:
        """A prediction with the labels that are most likely besides its own."""
        chosen = found.details["labels"] if self.multi else [found.text]
        left = [pair for pair in found.details["probabilities"].items() if pair[0] not in chosen]
        likely = sorted(left, key=lambda pair: -pair[1])[:count]
        others = [{"text": name, "confidence": chance} for name, chance in likely]
        lines = [f"  or {name}\t{chance:.3f}" for name, chance in likely]
        return replace(found, details={**found.details, "alternatives": others}, below=lines)

    def _predictions(
        self, probabilities: Float[np.ndarray, "N C"], extend: Extend | None, threshold: float
    ) -> Iterator[Prediction]:
        likeliest = probabilities.argmax(axis=1).tolist()
        largest = probabilities.max(axis=1).tolist()
        for row, values in enumerate(probabilities):
            details: Details
            if self.multi:
                by_name = dict(zip(self.names, values.tolist(), strict=True))
                chosen = [name for name, p in by_name.items() if p >= threshold]
                details = {"labels": chosen, "probabilities": by_name, "threshold": threshold}
                text = ", ".join(chosen)
                surest = min(p if p >= threshold else 1 - p for p in by_name.values())
            else:
                text, surest = self.names[likeliest[row]], largest[row]
                details = LabelDetails(text, self.names, values)
            yield Prediction(text, surest, details if extend is None else extend(row, details))

    def no_prediction(self) -> Prediction:
        """The prediction for an empty text."""
        chosen: dict[str, Any] = {"labels": []} if self.multi else {"label": ""}
        return Prediction("", 0.0, {**chosen, "probabilities": {}}, empty=True)

    def save(self, path: Path) -> None:
        """Write one JSON file, atomically."""
        write_json(asdict(self), path)

    @classmethod
    def load(cls, path: Path) -> "Labels":
        """What `save` wrote."""
        try:
            return fitting(cls, read_json(path), "it")
        except (OSError, ValueError, GlassformerError) as error:
            raise GlassformerError(
                f"{path}: not the labels of a run ({error}); copy the run folder again"
            ) from None


def names_in(sample: Sample, separator: str | None) -> list[str]:
    """The labels of a sample."""
    return names_of(sample["label"], separator)


def names_of(value: str | list[str], separator: str | None) -> list[str]:
    """The labels in the field of a sample."""
    if isinstance(value, str):
        value = value.split(separator) if separator else [value]
    return [stripped for name in value if (stripped := name.strip())]


def found_separator(samples: Samples, settings: LabelSettings) -> str | None:
    """What separates several labels in one field, if some have several and no setting says so."""
    if settings.multi_label is False:
        return None
    fields: Counter[str] = Counter()
    for value in samples.values("label"):
        if not isinstance(value, str) or len(fields) > MOST_FIELDS:
            return None
        fields[value.strip()] += 1
    return separator_of(fields)


def separator_of(fields: Mapping[str, int]) -> str | None:
    """What separates several labels, judged by how many rows have each field.

    The labels of such fields are, nearly all of them, the only label of other rows. In
    "Smith, John" they are not.

    >>> separator_of({"2": 50, "5": 40, "2,5": 9}), separator_of({"Smith, John": 9, "Roe, Jo": 7})
    (',', None)
    """
    for separator in SEPARATORS:
        together = {field: rows for field, rows in fields.items() if separator in field}
        if sum(together.values()) < max(2, SEVERAL * sum(fields.values())):
            continue
        pieces: Counter[str] = Counter()
        for field, rows in together.items():
            for piece in names_of(field, separator):
                pieces[piece] += rows
        alone = sum(rows for piece, rows in pieces.items() if fields.get(piece))
        if pieces and alone >= WHOLE * pieces.total():
            return separator
    return None


def separated_line(separator: str, fields: Mapping[str, int]) -> str:
    """What to say about a separator that was found.

    >>> separated_line(",", {"2": 50, "5": 40, "2,5": 9})
    "9 rows have several labels, separated by ',', as in '2,5'; if each is one label, --set \
task.multi_label=false"
    """
    several = {field: rows for field, rows in fields.items() if separator in field}
    rows = sum(several.values())
    return (
        f"{counted(rows, 'row')} {'has' if rows == 1 else 'have'} several labels, separated by "
        f"{separator!r}, as in {max(several, key=lambda field: several[field])[:40]!r}; if each "
        f"is one label, --set task.multi_label=false"
    )


def quantities(names: Collection[str]) -> str | None:
    """What numbers some labels are, if they are amounts rather than grades or classes.

    Classes are counted from 0 or 1; there are few grades.

    >>> quantities([str(age) for age in range(18, 91)])
    '73 different numbers from 18 to 90'
    >>> quantities(["1", "2", "3"]), quantities([str(number) for number in range(77)])
    (None, None)
    """
    if len(names) <= QUANTITIES:
        return None
    matches = [match for name in names if (match := NUMBER.fullmatch(name.strip()))]
    if len(matches) < NEARLY_ALL_NUMBERS * len(names):
        return None
    shown = {_amount(match[1]): match[0] for match in matches}
    lowest, highest = min(shown), max(shown)
    if lowest in (0, 1) and shown.keys() == {lowest + n for n in range(len(shown))}:
        return None
    return f"{len(matches):,} different numbers from {shown[lowest]} to {shown[highest]}"


def _amount(text: str) -> float:
    """A number, whichever of comma and point stands before its decimals."""
    whole, _, decimals = text.replace(",", ".").rpartition(".")
    if text.count(".") + text.count(",") > 1 or (len(decimals) == 3 and whole not in ("", "0")):
        return float(re.sub("[.,]", "", text))
    return float(text.replace(",", "."))


def no_regression(amounts: str) -> str:
    """What to do about amounts as labels."""
    return (
        f"the labels are {amounts}: no job predicts amounts; make a few grades of them in a column "
        f"of their own, such as low, medium and high, and name it with --columns label=..."
    )


def refuse_too_many(first: dict[str, int], samples: Samples) -> None:
    """Refuse so many labels that they are probably texts, or amounts."""
    if len(first) > MANY:
        name, row = next(reversed(first.items()))
        if (amounts := quantities(first)) is not None:
            raise GlassformerError(f"{samples[row]['where']}: {no_regression(amounts)}")
        raise GlassformerError(
            f"{samples[row]['where']}: more than {MANY:,} different labels, such as "
            f"{name[:40]!r}; is it the right column? Name it with --columns"
        )


def refuse_too_few(
    seen: Counter[str], first: dict[str, int], rarest: int, samples: Samples
) -> None:
    """Refuse a single label, and labels that are too rare to be trained on and scored."""
    if len(seen) < 2:
        only = f"only {next(iter(seen))!r}" if seen else "none"
        raise GlassformerError(
            f"{samples[0]['where']}: a classifier needs two or more labels, found {only}, here and "
            f"in every other row; name the column with --columns text=...,label=..."
        )
    name, count = min(seen.items(), key=lambda item: item[1])
    if count < rarest and (amounts := quantities(seen)) is not None:
        raise GlassformerError(f"{samples[first[name]]['where']}: {no_regression(amounts)}")
    if count < rarest:
        times = "once" if count == 1 else f"{count} times"
        others = sum(some < rarest for some in seen.values()) - 1
        too = f", and {others:,} more are as rare" if others else ""
        raise GlassformerError(
            f"{samples[first[name]]['where']}: label {name[:40]!r} occurs only {times}{too}; it "
            f"cannot be both trained on and scored: add rows, merge labels, or allow it with "
            f"--set task.rarest={count}"
        )
