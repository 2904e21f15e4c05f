"""Sequences of numbers as a classifier reads them, through a frontend of one's own."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from glassformer.config.run import Config
from glassformer.data.samples import Sample, Samples
from glassformer.models.transformer import ClassScores, Noise
from glassformer.tasks.classify.sounds import SoundBatch, refuse_settings_of_texts
from glassformer.tasks.classify.texts import refuse_settings_of_sounds
from glassformer.tasks.predictor import Prediction, Predictor
from glassformer.tasks.shared.label_inputs import Inputs, Read, Rows
from glassformer.tasks.shared.label_predictor import NextBest, unlabelled
from glassformer.tasks.shared.label_task import LabelTask
from glassformer.tasks.shared.sequences import (
    Given,
    SequenceStore,
    as_given,
    read_sequence,
    sequence_of,
)
from glassformer.tasks.shared.sound import padded_features

TOGETHER = 16  # sequences per batch of predictions
SHOWN = 40  # characters of a sequence in a table


class SequenceInputs(Inputs):
    """Sequences of numbers. What counts towards the size of a batch is their steps."""

    role, noun = "text", "sequence"
    epochs = 30.0
    batch = SoundBatch

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.channels = config, config.model.frontend.channels
        if data is not None:
            self.sequences = SequenceStore(data, self.channels)

    @staticmethod
    def prepare(config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        refuse_settings_of_texts(config, "sequences")
        refuse_settings_of_sounds(config.task, "sequences")
        first = sequence_of(next(samples.of("train")), "text")
        frontend = replace(config.model.frontend, channels=first.shape[1])
        return replace(config, model=replace(config.model, frontend=frontend), pretrain="no")

    def index(self, samples: Samples, data: Path) -> None:
        SequenceStore.write(data, (sequence_of(one, "text", self.channels) for one in samples))

    def lengths(self, numbers: Rows, *, training: bool) -> Rows:
        return self.sequences.lengths[numbers]

    def read(self, numbers: Rows, epoch: int | None) -> Read:
        return *self.sequences.padded(numbers), np.arange(len(numbers))

    def forward(self, model: nn.Module, batch: SoundBatch, noise: Noise | None) -> ClassScores:
        """Scores of the labels."""
        return model(batch.features, layout=batch.layout, noise=noise)

    def shown(self, sample: Sample) -> str:
        return Path(str(sample["text"])).name[:SHOWN]


class SequenceLabelPredictor(NextBest, Predictor[LabelTask, Given]):
    """The label or labels of a sequence, and the probability of every label."""

    kinds = (str, Path, np.ndarray)
    noun = "sequence"

    def accept(self, value: Any) -> Given:
        return as_given(super().accept(value))

    def predict(self, model: nn.Module, inputs: Iterable[Given]) -> Iterator[Prediction]:
        task, device = self.task, next(model.parameters()).device
        channels = task.config.model.frontend.channels
        rest, size = iter(inputs), TOGETHER if isinstance(inputs, list) else 1
        while some := [read_sequence(given, channels) for given in islice(rest, size)]:
            features, layout = padded_features(some)
            none, row_ids = unlabelled(task.labels, len(some)), torch.arange(len(some))
            batch = SoundBatch(features, layout, none, row_ids).to(device)
            with torch.no_grad():
                found = task.answers(model, [batch]).probabilities()
            yield from task.labels.predictions(found, self.alternatives)
            size = TOGETHER

    def from_sample(self, sample: Sample) -> Given:
        return as_given(str(sample["text"]))

    def example(self) -> str:
        return "sequence.npz"
