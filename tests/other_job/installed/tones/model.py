"""The model of `listen`: how loud each pitch of a frame is, an encoder, and scores of letters."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.models.transformer import Noise, embedded


class Spectrum(nn.Module):
    """Frames of sound to vectors: the frontend of its own."""

    def __init__(self, frame: int, dim: int) -> None:
        super().__init__()
        self.dim, self.to_vector = dim, nn.Linear(frame // 2 + 1, dim)

    def forward(
        self, samples: Float[Tensor, "B T W"], layout: Layout
    ) -> tuple[Float[Tensor, "B T D"], Layout]:
        pitches = torch.fft.rfft(samples.float()).abs()  # (B, T, W // 2 + 1)
        return self.to_vector(pitches.log1p()), layout


class Listener(nn.Module):
    """Scores of each letter, and of none, at every frame."""

    def __init__(self, frontend: Spectrum, encoder: nn.Module, letters: int) -> None:
        super().__init__()
        self.frontend, self.encoder = frontend, encoder
        self.to_letter = nn.Linear(frontend.dim, letters)

    def forward(
        self, samples: Float[Tensor, "B T W"], *, layout: Layout, noise: Noise | None = None
    ) -> Float[Tensor, "B T V"]:
        x, layout = embedded(self.frontend, samples, layout, noise)
        return self.to_letter(self.encoder(x, layout=layout))
