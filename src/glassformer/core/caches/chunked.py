"""ChunkCache: what a layer of an encoder keeps of a stream, however long that becomes."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.caches.base import KeyCache
from glassformer.core.layout import Layout
from glassformer.core.masks import Chunks
from glassformer.core.shapes import Keys, NewKeys, NewValues, Values


class ChunkCache(KeyCache):
    """Keys and values of the chunks that the next one sees, and the last inputs of convolutions.

    It is given chunk after chunk, all full but the last, each as a full row of every stream.

    Attributes:
        inputs: Of each convolution, the inputs before the next chunk; none before the first.
    """

    def __init__(self, mask: Chunks) -> None:
        self.context = mask.size * mask.left
        self.inputs: dict[nn.Conv1d, Float[Tensor, "B channels before"]] = {}
        self._k: Keys | None = None
        self._v: Values | None = None
        self._read = 0

    def place(self, layout: Layout) -> Layout:
        if layout.starts is not None:
            return layout
        starts = torch.full((1,), self._read, device=layout.device)
        return layout.shifted(starts, self._read + layout.longest, origin=self._read)

    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        if self._k is not None and self._v is not None:
            k, v = torch.cat([self._k, k], 2), torch.cat([self._v, v], 2)
        self._read, seen = layout.reach, k.shape[2]
        first = max(0, seen - self.context)
        self._k, self._v = k[:, :, first:], v[:, :, first:]
        starts, origin = torch.full((1,), layout.reach - seen, device=layout.device), layout.reach
        keys = Layout.full(layout.rows, seen, layout.device)
        return k, v, keys.shifted(starts, layout.reach, origin=origin - seen)
