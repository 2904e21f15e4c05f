"""Products of few vectors with a weight, x Wᵀ + b, as objects that keep the weight for it.

    Plain       by PyTorch
    Prepacked   by oneDNN from a number of rows on, and plain below it
    Int8        of integers

`product_of` chooses one; `sliced` has another for a single vector.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.int8 import int8_product, quantised
from glassformer.core.prepacked import prepacked, prepacked_product, rows_to_prepack

Few = Float[Tensor, "M D"]


class Product(ABC):
    """One way of computing x Wᵀ + b."""

    @abstractmethod
    def multiply(self, x: Few) -> Float[Tensor, "M N"]:
        """The product with every vector."""

    def add_to(self, y: Float[Tensor, "M N"], x: Few) -> None:
        """Add the product to vectors in place."""
        y.add_(self.multiply(x))


@dataclass(frozen=True, eq=False, slots=True)
class Plain(Product):
    """By PyTorch.

    Attributes:
        columns: The weight transposed, a view.
        out: The type of the result; that of the weight by default.
    """

    columns: Float[Tensor, "D N"]
    bias: Float[Tensor, " N"] | None
    out: torch.dtype | None

    def multiply(self, x: Few) -> Float[Tensor, "M N"]:
        if self.bias is not None:
            return self.bias.addmm(x, self.columns)
        if self.out is not None and x.is_cuda and self.out != x.dtype:
            return torch.mm(x, self.columns, out_dtype=self.out)  # saves a copy, and is not rounded
        return x @ self.columns

    def add_to(self, y: Float[Tensor, "M N"], x: Few) -> None:
        if self.bias is None:
            y.addmm_(x, self.columns)
        else:
            y.add_(self.multiply(x))


@dataclass(frozen=True, eq=False)
class Prepacked(Product):
    """By oneDNN for `rows` vectors and more."""

    few: Plain
    rows: int

    @cached_property
    def weight(self) -> Tensor:
        """The prepacked weight, made when it is needed."""
        return prepacked(self.few.columns.t().contiguous())

    def multiply(self, x: Few) -> Float[Tensor, "M N"]:
        if x.shape[0] < self.rows:
            return self.few.multiply(x)
        return prepacked_product(x, self.weight, self.few.bias)

    def add_to(self, y: Float[Tensor, "M N"], x: Few) -> None:
        if x.shape[0] < self.rows:
            self.few.add_to(y, x)
        else:
            y.add_(self.multiply(x))


@dataclass(frozen=True, eq=False, slots=True)
class Int8(Product):
    """Of integers, on a CPU."""

    weight: Any
    bias: Float[Tensor, " N"] | None

    def multiply(self, x: Few) -> Float[Tensor, "M N"]:
        return int8_product(x, self.weight, self.bias)


def product_of(
    weight: Float[Tensor, "N D"],
    bias: Float[Tensor, " N"] | None,
    *,
    out: torch.dtype | None = None,
    int8: bool = False,
) -> Product:
    """The fastest product with this weight; in int8 if asked."""
    if int8:
        return Int8(quantised(weight), bias)
    plain, rows = Plain(weight.t(), bias, out), rows_to_prepack(weight)
    return plain if rows is None else Prepacked(plain, rows)
