"""Texts for sequences of numbers, which a frontend of one's own reads."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.tasks.predictor import Prediction, Predictor
from glassformer.tasks.shared.generation import GenerationOptions
from glassformer.tasks.shared.sequences import Given, as_given, read_sequence
from glassformer.tasks.shared.sound import padded_features
from glassformer.tasks.shared.written import decode_settings, token_lines
from glassformer.tasks.translate.explainer import TranslateExplainer
from glassformer.tasks.translate.predictor import TranslatePredictor
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.writing import as_prediction

TOGETHER = 16  # sequences per batch


class SequencePredictor(Predictor[TranslateTask, Given]):
    """What the decoder writes for sequences."""

    kinds = (str, Path, np.ndarray)
    noun = "sequence"

    def __init__(self, task: TranslateTask) -> None:
        super().__init__(task)
        self.writer, self.scores = task.writer, False

    def configured(
        self,
        *,
        scores: bool = False,
        align: bool = False,
        picture: str | Path | None = None,
        set: str | Sequence[str] | Mapping[str, Any] = (),
        **generation: Any,
    ) -> "SequencePredictor":
        if align or picture is not None:
            raise GlassformerError("a sequence of numbers has no words to align; drop --align")
        other = copy(self)
        options = GenerationOptions(decode=decode_settings(set), **generation)
        other.writer, other.scores = self.task.writer.with_options(options), scores
        return other

    def accept(self, value: Any) -> Given:
        return as_given(super().accept(value))

    def predict(self, model: nn.Module, inputs: Iterable[Given]) -> Iterator[Prediction]:
        device, channels = next(model.parameters()).device, self.task.config.model.frontend.channels
        rest, size = iter(inputs), TOGETHER if isinstance(inputs, list) else 1
        while some := [read_sequence(given, channels) for given in islice(rest, size)]:
            features, layout = padded_features(some)
            for answers in self.writer.write(model, features.to(device), layout.to(device)):
                yield self._shown(as_prediction(answers))
            size = TOGETHER

    def _shown(self, found: Prediction) -> Prediction:
        others = found.details["alternatives"]
        below = [f"  or {other['text']}\t{other['probability']:.3f}" for other in others]
        lines = token_lines(found.details["tokens"]) if self.scores else []
        return replace(found, below=[*below, *lines])

    def from_sample(self, sample: Sample) -> Given:
        return as_given(str(sample["source"]))

    def example(self) -> str:
        return "sequence.npz"


def predictor_of(task: TranslateTask) -> TranslatePredictor | SequencePredictor:
    """The predictor for what the run reads."""
    return SequencePredictor(task) if task.reads_sequences else TranslatePredictor(task)


def explainer_of(task: TranslateTask) -> TranslateExplainer:
    """The explainer; none for what only a frontend of one's own understands."""
    if task.reads_sequences:
        raise GlassformerError(
            f"{task.folder}: what its sequences consist of only their frontend knows, which is "
            f"your own; use predict"
        )
    return TranslateExplainer(task)
