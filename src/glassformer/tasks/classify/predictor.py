"""Labels for new texts."""

from collections.abc import Iterable, Iterator

import numpy as np
import torch
from torch import nn

from glassformer.data.batches import ordered_batches
from glassformer.data.jagged import Jagged
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.shared.text import TextBatch, TextPredictor, growing, text_batch

TOGETHER = 256  # texts per chunk


class ClassifyPredictor(TextPredictor[ClassifyTask]):
    """The label or labels of a text, and the probability of every label."""

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        task, device = self.task, next(model.parameters()).device
        for texts in growing(inputs, TOGETHER):
            pieces = [task.cut(ids) for ids in task.tokenizer.encode(texts)]
            batches = (batch.to(device) for batch in self._unlabelled(pieces))
            with torch.no_grad():  # not while the caller's code runs
                found = task.answers(model, batches).probabilities()
            for probabilities in found:
                yield task.labels.prediction(probabilities)

    def _unlabelled(self, texts: list[list[np.ndarray]]) -> Iterator[TextBatch]:
        """Batches of texts in pieces, grouped by length."""
        labels, budget = self.task.labels, self.task.config.data.batch_tokens
        pieces = [piece for text in texts for piece in text]
        row_ids = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        lengths = np.array([len(piece) for piece in pieces])
        for rows in ordered_batches(lengths, budget, padded=True):
            chosen = Jagged.of([pieces[row] for row in rows.tolist()])
            ids, layout = text_batch(chosen, packed=False)
            shape = (len(rows), len(labels.names)) if labels.multi else (len(rows),)
            none = torch.zeros(shape, dtype=torch.long)
            yield TextBatch(ids, layout, none, torch.from_numpy(row_ids[rows]))
