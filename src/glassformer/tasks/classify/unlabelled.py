"""Texts without labels in the training of a classifier: consistency, where there is no answer.

R-Drop and virtual adversarial training ask that two views of a text get the same answer, whatever
the right one is, so any text can take part. Every labelled row of a batch brings one along, another
in every epoch. Xie et al., "Unsupervised data augmentation", 2019.
"""

from pathlib import Path

import numpy as np

from glassformer.config.run import Config
from glassformer.data.batches import row_noise
from glassformer.tasks.classify.texts import TextInputs
from glassformer.tasks.shared.label_inputs import Read, Rows

FOLDER = "unlabelled"
DRAWN = 2  # the stream of random numbers, beside those of `TextInputs`


class UnlabelledTexts:
    """The training rows, each with another text beside it.

    Args:
        folder: The run, where the texts follow the training and the validation rows.
        labelled: How many training and validation rows there are.
    """

    def __init__(self, config: Config, folder: Path, labelled: int) -> None:
        self.seed, self.labelled = config.seed, labelled
        self.inputs = TextInputs(config, folder, folder / FOLDER)
        self.count = len(self.inputs.samples) - labelled

    @classmethod
    def of(cls, config: Config, folder: Path, labelled: int) -> "UnlabelledTexts | None":
        """Those of a run; None where none are there, or nothing would compare two views."""
        asked = config.train.regularise
        if not (asked.r_drop or asked.vat.weight) or not (folder / FOLDER).is_dir():
            return None
        found = cls(config, folder, labelled)
        return found if found.count > 0 else None

    @property
    def typical_length(self) -> int:
        """Tokens that a text adds to a batch, on average."""
        numbers = np.arange(self.labelled, self.labelled + self.count)
        return round(float(self.inputs.lengths(numbers, training=True).mean()))

    def drawn(self, rows: Rows, epoch: int) -> Rows:
        """The text that each training row brings along."""
        noise = row_noise(self.seed, epoch, rows, np.ones_like(rows), stream=DRAWN)
        return self.labelled + (noise * self.count).astype(np.int64)

    def read(self, rows: Rows, epoch: int) -> Read:
        """What is read of training rows, and after them of the texts that they bring along."""
        return self.inputs.read(np.concatenate([rows, self.drawn(rows, epoch)]), epoch)
