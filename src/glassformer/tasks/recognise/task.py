"""`recognise`: one label, or several, for an image."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config.run import Config
from glassformer.data.images.augment import mixed
from glassformer.data.samples import Samples
from glassformer.tasks.recognise.images import ImageInputs
from glassformer.tasks.shared.label_task import LabelTask


class RecogniseTask(LabelTask):
    """Images and their labels."""

    name = "recognise"
    inputs: ImageInputs

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        super().__init__(config, folder, data, ImageInputs)

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        config = cls.settle_labels(config, samples, folder)
        return ImageInputs.prepare(config, samples, folder, origin)

    @property
    def objective_note(self) -> str | None:
        if not self.settings.augment.mixup:
            return None
        return (
            "The training objective is that of mixed images (task.augment.mixup), which are never "
            "surely of one label: it is larger than the validation loss by design."
        )

    def labels_of(self, numbers: Int[np.ndarray, " pieces"], epoch: int | None) -> Tensor:
        """As in `LabelTask`; of an image that is mixed with another, a share of both labels."""
        if epoch is None or not self.settings.augment.mixup:
            return super().labels_of(numbers, epoch)
        others, share = self.inputs.mixes(numbers, epoch)
        first, second = (self._shares(rows) for rows in (numbers, others))
        return torch.from_numpy(mixed(first, second, share[:, None]).astype(np.float32))

    def _shares(self, numbers: Int[np.ndarray, " rows"]) -> Float[np.ndarray, "rows C"]:
        """1 for each label that a sample has, and 0 for the others."""
        label_ids = self.label_ids[numbers]
        return (label_ids if self.labels.multi else np.eye(self.classes)[label_ids]).astype(float)
