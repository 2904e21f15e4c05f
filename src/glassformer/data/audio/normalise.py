"""Mean and variance normalisation: features of mean 0 and variance 1 in every bin.

By the moments of each recording, which removes its volume and microphone; or by those of all
training data, which keeps them, and needs no end of the recording to begin.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json

SMALLEST = 1e-2  # standard deviation; a bin that hardly changes stays near 0


@dataclass(frozen=True, slots=True)
class Moments:
    """The mean and the standard deviation of every bin."""

    mean: Float[Tensor, " M"]
    deviation: Float[Tensor, " M"]

    @staticmethod
    def of(recordings: Iterable[Float[Tensor, "_ M"]]) -> "Moments":
        """Over all frames of some recordings, at least one."""
        sums, frames = torch.zeros(2, 1, dtype=torch.float64), 0  # of values and of their squares
        for recording in recordings:
            values = recording.double()
            sums = sums + torch.stack([values.sum(0), values.square().sum(0)])
            frames += len(values)
        mean, squares = sums / max(1, frames)
        variance = (squares - mean.square()).clamp_min(0)
        return Moments(mean.float(), variance.sqrt().clamp_min(SMALLEST).float())

    def normalise(self, features: Float[Tensor, "F M"]) -> Float[Tensor, "F M"]:
        """Features of which these moments become 0 and 1."""
        return (features - self.mean) / self.deviation

    def save(self, path: Path) -> None:
        """Write them to a file."""
        write_json({"mean": self.mean.tolist(), "deviation": self.deviation.tolist()}, path)

    @staticmethod
    def load(path: Path) -> "Moments":
        """Read what `save` wrote."""
        try:
            values = read_json(path)
            return Moments(torch.tensor(values["mean"]), torch.tensor(values["deviation"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise GlassformerError(
                f"{path}: missing or damaged, but it says how features are normalised; copy the "
                f"run again"
            ) from None
