"""What each part of a model contributed to a prediction, the n-grams by name."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from glassformer.metrics.calibration import Logits
from glassformer.tasks.classify.blend import NgramPart
from glassformer.tasks.classify.stored_baseline import StoredBaseline
from glassformer.tasks.shared.label_answers import ClassAnswers

NAMED = 5  # n-grams of a text


def contributions(
    answers: ClassAnswers, stored: StoredBaseline, texts: Sequence[str], names: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """For each text, what the model and the n-grams add to the score of every label.

    The sums of both are logits: their softmax, or sigmoid if a text has any number of labels, gives
    the probabilities. The n-grams are those that count most for or against the likeliest label.
    """
    assert isinstance(answers.ngrams, NgramPart)
    blend = answers.ngrams.blend
    model = centred(blend.model * answers.without_ngrams().logits, answers.multi)
    ngrams = centred(blend.ngrams * answers.ngrams.logits, answers.multi)
    likeliest = answers.logits.argmax(axis=1)
    scale = blend.ngrams / stored.record.temperature
    strongest = stored.strongest(texts, likeliest, NAMED)
    for row, found in enumerate(strongest):
        yield {
            "parts": {
                "model": dict(zip(names, model[row].tolist(), strict=True)),
                "ngrams": dict(zip(names, ngrams[row].tolist(), strict=True)),
            },
            "ngrams": [
                {"ngram": one.ngram, "unit": one.unit, "adds": scale * strength}
                for one, strength in found
            ],
        }


def centred(logits: Logits, multi: bool) -> Logits:
    """Logits whose mean over the labels is 0, which leaves a softmax as it is."""
    return logits if multi else logits - np.mean(logits, axis=1, keepdims=True)
