"""A weight in slices, for products with a single vector on a CPU.

MKL computes the product of one row with a matrix in one thread. A batch of such products, however,
is shared among all threads, so the rows of the weight are cut into slices, one product each.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

SLICE = 64  # rows


@dataclass(frozen=True, eq=False, slots=True)
class SlicedWeight:
    """A linear layer for a single vector.

    Attributes:
        slices: Of the weight, transposed; the last may end with rows of zeros.
        bias: In slices, too.
        outs: Rows of the weight.
    """

    slices: Float[Tensor, "slices D size"]
    bias: Float[Tensor, "slices 1 size"] | None
    outs: int

    @staticmethod
    def of(weight: Float[Tensor, "N D"], bias: Float[Tensor, " N"] | None) -> "SlicedWeight":
        """That of a layer; the weight is only copied if it has no whole number of slices."""
        outs, width = weight.shape
        missing = -outs % SLICE
        rows = F.pad(weight, (0, 0, 0, missing)) if missing else weight.contiguous()
        bias = None if bias is None else F.pad(bias, (0, missing)).view(-1, 1, SLICE)
        return SlicedWeight(rows.view(-1, SLICE, width).mT, bias, outs)

    @property
    def weight(self) -> Float[Tensor, "N D"]:
        """The whole weight, a view."""
        return self.slices.mT.flatten(0, 1)[: self.outs]

    @property
    def whole(self) -> bool:
        """Whether the weight has a whole number of slices."""
        return self.outs % SLICE == 0

    def __call__(self, x: Float[Tensor, "1 D"], scale: float = 1.0) -> Float[Tensor, "1 N"]:
        """scale x Wᵀ + b."""
        y = x.new_empty(self.slices.shape[0], 1, SLICE)
        self._write(y, x, scale)
        y = y.view(1, -1)
        return y if self.whole else y[:, : self.outs]

    def write(self, y: Float[Tensor, "1 N"], x: Float[Tensor, "1 D"], scale: float = 1.0) -> None:
        """Overwrite a vector with the same, if the weight has a whole number of slices."""
        self._write(y.view(-1, 1, SLICE), x, scale)

    def add_to(self, y: Float[Tensor, "1 N"], x: Float[Tensor, "1 D"]) -> None:
        """Add the product, without the bias, to a vector, if there is a whole number of slices."""
        y.view(-1, 1, SLICE).baddbmm_(x.expand(self.slices.shape[0], 1, -1), self.slices)

    def _write(
        self, y: Float[Tensor, "slices 1 size"], x: Float[Tensor, "1 D"], scale: float
    ) -> None:
        xs = x.expand(self.slices.shape[0], 1, -1)
        if self.bias is None:
            y.baddbmm_(xs, self.slices, beta=0, alpha=scale)
        else:
            torch.baddbmm(self.bias, xs, self.slices, alpha=scale, out=y)


def can_slice(weight: Float[Tensor, "N D"]) -> bool:
    """Whether this machine multiplies batches by MKL, and there is more than one slice."""
    there = torch.backends.mkl.is_available() and weight.device.type == "cpu"
    return there and weight.dtype == torch.float32 and len(weight) > SLICE
