"""What each part of a model contributed to a prediction, the n-grams by name.

Few who want a label want this, and it takes longer than the label: it is worked out when somebody
looks at it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from glassformer.metrics.calibration import Logits
from glassformer.tasks.classify.blend import NgramPart
from glassformer.tasks.classify.linear import logits_without
from glassformer.tasks.classify.stored_baseline import StoredBaseline
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.lazy_details import LazyDetails

NAMED = 5  # n-grams of a text
KEYS = ("parts", "ngrams")


class Contributions:
    """The contributions to the predictions for some texts."""

    def __init__(
        self,
        answers: ClassAnswers,
        stored: StoredBaseline,
        texts: Sequence[str],
        names: Sequence[str],
    ) -> None:
        self.answers, self.stored, self.texts, self.names = answers, stored, texts, names

    @cached_property
    def found(self) -> list[dict[str, Any]]:
        """What `contributions` says of each text."""
        return list(contributions(self.answers, self.stored, self.texts, self.names))


class WithContributions(LazyDetails):
    """The details of a prediction, with the contributions to it."""

    __slots__ = ("contributions", "details", "row")
    costly = KEYS

    def __init__(self, details: Mapping[str, Any], contributions: Contributions, row: int) -> None:
        super().__init__((*details, *KEYS))
        self.details, self.contributions, self.row = details, contributions, row

    def find(self, name: str) -> Any:
        known = name in self.details
        return self.details[name] if known else self.contributions.found[self.row][name]


def contributions(
    answers: ClassAnswers, stored: StoredBaseline, texts: Sequence[str], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """For each text, what the model and the n-grams add to the score of every label.

    The sums of both are logits: their softmax, or sigmoid if a text has any number of labels, gives
    the probabilities. The n-grams are those that count most for or against the likeliest label;
    what one adds is what that label's sum would lose without it.
    """
    assert isinstance(answers.ngrams, NgramPart)
    blend, multi, temperature = answers.ngrams.blend, answers.multi, stored.record.temperature
    model = centred(blend.model * answers.without_ngrams().logits, multi)
    ngrams = centred(blend.ngrams * answers.ngrams.logits, multi)
    likeliest = answers.logits.argmax(axis=1)
    strongest = stored.strongest(texts, likeliest, NAMED)
    for row, some in enumerate(strongest):
        label, logits = likeliest[row], temperature * answers.ngrams.logits[row : row + 1]
        added = np.reshape([one.weights for one, _ in some], (len(some), len(names)))
        without = blend.ngrams / temperature * logits_without(logits, added, multi)
        adds = ngrams[row, label] - centred(without, multi)[:, label]
        yield {
            "parts": {
                "model": dict(zip(names, model[row].tolist(), strict=True)),
                "ngrams": dict(zip(names, ngrams[row].tolist(), strict=True)),
            },
            "ngrams": [
                {"ngram": some[n][0].ngram, "unit": some[n][0].unit, "adds": float(adds[n])}
                for n in np.argsort(-abs(adds), kind="stable")
            ],
        }


def centred(logits: Logits, multi: bool) -> Logits:
    """Logits whose mean over the labels is 0, which leaves a softmax as it is."""
    return logits if multi else logits - np.mean(logits, axis=1, keepdims=True)
