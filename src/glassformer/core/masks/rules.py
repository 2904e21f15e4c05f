"""The rules that need nothing but positions: everything, causal, window, prefix, chunks."""

from dataclasses import dataclass
from typing import Any

from glassformer.core.masks.base import Band, Index, Mask


@dataclass(frozen=True, repr=False)
class Everything(Mask):
    """Every query sees every key of its row. The mask of encoders and of cross-attention."""

    @property
    def band(self) -> Band:
        return None, None

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return (q >= 0) & (k >= 0)  # always; written so that it broadcasts over both

    def __repr__(self) -> str:
        return "everything"


@dataclass(frozen=True, repr=False)
class Causal(Mask):
    """The past and the present, never the future."""

    @property
    def band(self) -> Band:
        return None, 0

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return k <= q

    def __repr__(self) -> str:
        return "causal"


@dataclass(frozen=True, repr=False)
class Window(Mask):
    """The position itself and its nearest neighbours, fewer than `size` steps away."""

    size: int

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(
                f"a window must hold at least the position itself: got size {self.size}, "
                f"use 1 or more"
            )

    @property
    def band(self) -> Band:
        return self.size - 1, self.size - 1

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return (q - k < self.size) & (k - q < self.size)

    def __repr__(self) -> str:
        return f"window({self.size})"


@dataclass(frozen=True, repr=False)
class Prefix(Mask):
    """The first `length` positions, for every query. `causal | prefix(n)` is a prefix LM."""

    length: int

    def __post_init__(self) -> None:
        if self.length < 1:
            raise ValueError(f"a prefix must have at least 1 position, got {self.length}")

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        return (k < self.length) & (q >= 0)

    def __repr__(self) -> str:
        return f"prefix({self.length})"


@dataclass(frozen=True, repr=False)
class Chunks(Mask):
    """The chunk of `size` positions around the query, and the `left` chunks before it.

    Nothing beyond a chunk is awaited, and nothing far behind it kept: the mask of an encoder that
    reads a stream.
    """

    size: int
    left: int

    def __post_init__(self) -> None:
        if self.size < 1 or self.left < 0:
            raise ValueError(
                f"a chunk has 1 position or more, and 0 chunks or more before it; got {self}"
            )

    def sees(self, row: Index, q: Index, k: Index) -> Any:
        back = q // self.size - k // self.size
        return (back >= 0) & (back <= self.left)

    def __repr__(self) -> str:
        return f"chunks({self.size}, {self.left})"


everything = Everything()
causal = Causal()
window = Window
prefix = Prefix
chunks = Chunks
