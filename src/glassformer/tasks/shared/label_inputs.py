"""What is read to predict labels, as numbers and in batches: texts, recordings, images.

A run has one kind of them, which the frontend of its model tells.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int
from torch import Tensor, nn

from glassformer.config.run import Config
from glassformer.core.layout import Layout
from glassformer.data.samples import Sample, Samples
from glassformer.errors import GlassformerError
from glassformer.models.frontends.words import Spelling
from glassformer.models.transformer import ClassScores, Noise

Rows = Int[np.ndarray, " chosen"]
Read = tuple[Tensor, Layout, Int[np.ndarray, " pieces"]]  # and which row each piece is of


class Inputs(ABC):
    """One kind of inputs, over the samples of a run.

    Attributes:
        role: The role of a sample that is read.
        noun: What one input is called.
        epochs: How long to train when nobody says.
        batch: The class of a batch, made of what is read, its layout, labels and row_ids.
        source: The size of the vocabulary, if tokens are read.
        spelling: How words are written in these tokens, if members of an ensemble read words.

    Args:
        data: Where samples and their index are; None for a run that is only used.
    """

    role: ClassVar[str]
    noun: ClassVar[str]
    epochs: ClassVar[float]
    batch: ClassVar[Any]
    source: int | None = None
    spelling: Spelling | None = None

    @abstractmethod
    def __init__(self, config: Config, folder: Path, data: Path | None) -> None: ...

    @staticmethod
    @abstractmethod
    def prepare(config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        """As in `JobTask`."""

    @abstractmethod
    def index(self, samples: Samples, data: Path) -> None:
        """As in `JobTask`."""

    @property
    def padded(self) -> bool:
        """As in `Task`."""
        return True

    @property
    def mixes_lengths(self) -> bool:
        """As in `Task`."""
        return False

    @abstractmethod
    def lengths(self, numbers: Rows, *, training: bool) -> Rows:
        """The length of what is read of some samples."""

    @abstractmethod
    def read(self, numbers: Rows, epoch: int | None) -> Read:
        """What is read of some samples; None for the epoch leaves all randomness out."""

    @abstractmethod
    def forward(self, model: nn.Module, batch: Any, noise: Noise | None) -> ClassScores:
        """The scores of the labels."""

    @abstractmethod
    def shown(self, sample: Sample) -> str:
        """A sample in a table."""

    @classmethod
    def refuse_others(cls, samples: Samples) -> None:
        """Refuse samples of another kind."""
        if cls.role in samples.spools:  # of every sample
            return
        for sample in samples:
            if cls.role not in sample:
                raise GlassformerError(
                    f"{sample['where']}: not a {cls.noun}, as the other rows or those of the run "
                    f"are; give {cls.noun}s only"
                )
