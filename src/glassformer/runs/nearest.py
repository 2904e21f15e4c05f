"""The training rows that are nearest to an input, so that a mislabelled one is found."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.explaining.nearest import nearest, pooling, vector_of
from glassformer.explaining.parts import Neighbour
from glassformer.explaining.subject import Subject
from glassformer.runs.display import Done
from glassformer.runs.rows import OpenedRows
from glassformer.tasks import JOBS
from glassformer.training.loader import evaluation_rows, load_for_evaluation

MOST_ROWS = 20_000  # training rows that are compared with, a sample of more
SPLIT = "train"


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingVectors:
    """Training rows in the space of the encoder.

    Attributes:
        numbers: The sample that each row is of.
    """

    numbers: Int[np.ndarray, " rows"]
    vectors: Float[Tensor, "rows D"]

    def neighbours(self, subject: Subject, opened: OpenedRows, most: int) -> tuple[Neighbour, ...]:
        """The rows that are nearest to an input."""
        found = nearest(vector_of(subject), self.vectors, most)
        return tuple(
            neighbour(opened, opened.samples[int(self.numbers[row])], similarity)
            for row, similarity in found
        )


@torch.no_grad()
def training_vectors(opened: OpenedRows, model: nn.Module, progress: Done) -> TrainingVectors:
    """The vectors of the training rows of a run, or of a sample of them."""
    task, samples = opened.task, opened.samples.rows(SPLIT)
    if len(task.lengths(SPLIT)) != len(samples):
        raise GlassformerError(
            f"training rows of {task.name} are pieces of texts, which have no neighbours; leave "
            f"out the nearest rows"
        )
    batches = evaluation_rows(task, opened.setup, SPLIT, max_rows=MOST_ROWS)
    numbers, vectors = [], []
    with pooling(model) as (copy, pooled):
        loaded = load_for_evaluation(task, opened.setup, SPLIT, batches)
        for rows, batch in zip(batches, loaded, strict=True):
            task.forward(copy, batch)
            vectors.append(by_row(pooled.pop(), rows, getattr(batch, "row_ids", None)))
            pooled.clear()
            numbers.append(samples[rows])
            progress(sum(map(len, numbers)), sum(map(len, batches)))
    return TrainingVectors(numbers=np.concatenate(numbers), vectors=torch.cat(vectors))


def by_row(
    pooled: Float[Tensor, "pieces D"], rows: Int[np.ndarray, " rows"], row_ids: Tensor | None
) -> Float[Tensor, "rows D"]:
    """The vectors of rows; of one that is read in several pieces, their mean."""
    if len(pooled) == len(rows):
        return pooled
    assert row_ids is not None
    place = torch.from_numpy(np.searchsorted(rows, row_ids.cpu().numpy(), sorter=np.argsort(rows)))
    place = torch.from_numpy(np.argsort(rows))[place].to(pooled.device)
    total = pooled.new_zeros(len(rows), pooled.shape[1]).index_add(0, place, pooled)
    return total / place.bincount(minlength=len(rows))[:, None]


def neighbour(opened: OpenedRows, sample: Sample, similarity: float) -> Neighbour:
    """A training row, its input and its answer as texts."""
    roles = JOBS[opened.task.name].schema.roles
    read = [role.name for role in roles if not role.answer and role.name in sample]
    text = str(sample[read[0]]) if read else ""
    if read[:1] == ["path"]:  # of a recording or an image
        text = "/".join(Path(text).parts[-2:])
    answers = [sample[role.name] for role in roles if role.answer and role.name in sample]
    target = answers[0] if answers else ""
    return Neighbour(
        where=str(sample["where"]),
        text=text,
        target=", ".join(target) if isinstance(target, list) else str(target),
        similarity=similarity,
    )
