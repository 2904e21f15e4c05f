"""Listening: a stream of sound is encoded chunk by chunk, each computed once.

The scores are those of the whole recording at once, under the same mask. Of what came before a
chunk, every block keeps the keys and values that the chunk sees and the last inputs of its
convolutions; the frontend computes a few vectors around it again.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.caches import ChunkCache
from glassformer.core.layout import Layout
from glassformer.core.masks import Chunks, Mask
from glassformer.models.frontends import MelResNet, Subsampling, TimeSubsampling
from glassformer.models.stacks import Encoder
from glassformer.models.transcriber import Transcriber


class Listener:
    """Scores of frames as they arrive.

    Args:
        model: Trained with such a mask.
        mask: Of chunks.
    """

    def __init__(self, model: Transcriber, mask: Mask) -> None:
        frontend, encoder = model.frontend, model.encoder
        if not (
            isinstance(mask, Chunks)
            and isinstance(encoder, Encoder)
            and isinstance(frontend, Subsampling | TimeSubsampling | MelResNet)
        ):
            raise ValueError(
                f"a model that sees {mask} cannot read a stream; use a frontend for sound, an "
                f"encoder of blocks and a mask of chunks"
            )
        self.model, self.mask, self.factor = model, mask, frontend.factor
        self.before, self.after = frontend.context
        self.caches = [ChunkCache(mask) for _ in encoder.blocks]
        self.frames = torch.zeros(0, frontend.bins, device=model.to_token.weight.device)
        self.first = 0  # the frame where `frames` begin
        self.done = 0  # vectors so far

    @property
    def delay(self) -> int:
        """How many frames must have arrived for the first vector."""
        return self.factor * (self.mask.size + self.after)

    def hear(
        self, frames: Float[Tensor, "F M"], *, last: bool = False
    ) -> Iterator[Float[Tensor, "T V"]]:
        """The log-probabilities of the vectors of each chunk that these frames complete.

        Args:
            last: Whether no more frames follow.
        """
        self.frames = torch.cat([self.frames, frames.to(self.frames)])
        while count := self._ready(last):
            yield self._next(count)

    def _ready(self, last: bool) -> int:
        """How many vectors the next chunk has; 0 before it can be computed."""
        arrived = self.first + len(self.frames)
        if arrived >= self.factor * self.done + self.delay:
            return self.mask.size
        return min(self.mask.size, -(-arrived // self.factor) - self.done) if last else 0

    @torch.no_grad()
    def _next(self, count: int) -> Float[Tensor, "T V"]:
        end = self.done + count
        window = self.frames[None, : self.factor * (end + self.after) - self.first]
        x, _ = self.model.frontend(window, Layout.full(1, window.shape[1], window.device))
        x = x[:, self.done - self.first // self.factor :][:, :count]
        layout = Layout.full(1, count, x.device)
        x = self.model.encoder(x, layout=layout, mask=self.mask, caches=self.caches)
        self.done = end
        kept = self.factor * max(0, end - self.before)
        self.frames, self.first = self.frames[kept - self.first :], kept
        return self.model.to_token(x)[0].float().log_softmax(-1)
