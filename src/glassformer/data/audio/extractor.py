"""From the samples of a recording to the features that a model reads, as numbers of 16 bits."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Float16
from torch import Tensor

from glassformer.data.audio.features import WINDOW, Cepstra, FilterBank, ToneBank
from glassformer.data.audio.normalise import Moments
from glassformer.errors import GlassformerError

Features = Float[np.ndarray, "_ M"]  # no name: each has its own length


class Extractor:
    """Extracts the features of recordings, one by one.

    Args:
        kind: A name in BANKS.
        rate: Samples a second.
        bins: Features a frame.
        moments: By which they are normalised; by default, those of each recording.
        window: How long a frame is, in milliseconds.
    """

    def __init__(
        self,
        kind: str,
        rate: int,
        bins: int,
        moments: Moments | None = None,
        *,
        window: int = WINDOW,
    ) -> None:
        try:
            self.bank = BANKS[kind](rate, bins, window=window)
        except ValueError as error:
            raise GlassformerError(f"model.frontend.bins = {bins}: {error}") from None
        self.bins, self.moments = bins, moments

    def __call__(self, sound: Float[np.ndarray, " _"]) -> Float16[np.ndarray, "F M"]:
        """The features of a recording."""
        found = self.unnormalised(sound)
        normalised = (self.moments or Moments.of([found])).normalise(found)
        return normalised.numpy().astype(np.float16)

    @torch.no_grad()
    def unnormalised(self, sound: Float[np.ndarray, " _"]) -> Float[Tensor, "F M"]:
        """The features of a recording, with its volume."""
        frames, _ = self.bank(torch.from_numpy(sound)[None], [len(sound)])
        return frames[0]


BANKS: dict[str, Callable[..., FilterBank | Cepstra | ToneBank]] = {
    "mel": FilterBank,
    "mfcc": Cepstra,
    "tone": ToneBank,
}
