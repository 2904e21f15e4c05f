"""A linear layer for few vectors, with the norm before it and what follows it.

    y = residual + f(norm(x) Wᵀ + b)        f the activation; gated, f(first half) * second half

The weights of the norm are folded into W and b, so that it only has to centre and scale x. On a
CPU, so is the √D of an RMSNorm, which then divides x by √(|x|² + D ε).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.feedforward import gelu_tanh, relu_squared
from glassformer.core.gelu import gelu
from glassformer.core.int8 import Int8Linear, int8_product, quantised
from glassformer.core.norms import LayerNorm, RMSNorm
from glassformer.core.prepacked import prepacked, prepacked_product, rows_to_prepack
from glassformer.core.steps.sliced import SlicedWeight, can_slice

Few = Float[Tensor, "M D"]
FEW = 64  # vectors, up to which the kernel is the fastest way on a GPU,
FEW_GATED = 256  # and of a gated layer in half precision, since it saves two more kernels
ACTIVATIONS: dict[Callable[[Tensor], Tensor], str] = {
    F.relu: "relu",
    relu_squared: "relu2",
    gelu: "gelu",
    gelu_tanh: "gelu-tanh",
    F.silu: "silu",
}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class StepLinear:
    """One or several linear layers of the same vectors, as a single matrix product.

    Attributes:
        weight: Gated, the rows of the gate come first.
        columns: The weight transposed, a view.
        norm: "rms", "layer" or none.
        sums: Of each row of the weight, if the norm centres.
        out: The type of the result; that of the weight by default.
        int8: The weight for products in int8, on a CPU; None for those in full.
        sliced: The weight for products with a single vector; None where there is nothing faster.
        prepacks_from: Rows from which on a product uses a prepacked copy; None for never.
        memo: That copy, once it was needed.
    """

    weight: Float[Tensor, "N D"]
    columns: Float[Tensor, "D N"]
    bias: Float[Tensor, " N"] | None = None
    norm: str | None = None
    epsilon: float = 0.0
    sums: Float[Tensor, " N"] | None = None
    activation: Callable[[Tensor], Tensor] | None = None
    gated: bool = False
    out: torch.dtype | None = None
    int8: Any = None
    sliced: SlicedWeight | None = None
    prepacks_from: int | None = None
    memo: dict[str, Tensor] = field(default_factory=dict, init=False)

    @staticmethod
    def of(
        linears: Sequence[nn.Linear],
        dtype: torch.dtype,
        *,
        norm: nn.Module | None = None,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> "StepLinear":
        """These layers, after a norm; with an activation, several are a gated network."""
        weight = torch.cat([linear.weight for linear in linears])
        bias = None
        if any(linear.bias is not None for linear in linears):
            none = [weight.new_zeros(linear.out_features) for linear in linears]
            pairs = zip(linears, none, strict=True)
            bias = torch.cat(
                [zeros if layer.bias is None else layer.bias for layer, zeros in pairs]
            )
        gated = activation is not None and len(linears) > 1
        int8 = all(isinstance(linear, Int8Linear) for linear in linears)
        made = StepLinear.of_weight(weight, dtype, bias=bias, norm=norm, int8=int8)
        return replace(made, activation=activation, gated=gated)

    @staticmethod
    @torch.no_grad()
    def of_weight(
        weight: Float[Tensor, "N D"],
        dtype: torch.dtype,
        *,
        bias: Float[Tensor, " N"] | None = None,
        norm: nn.Module | None = None,
        out: torch.dtype | None = None,
        int8: bool = False,
    ) -> "StepLinear":
        """A layer with this weight, after a norm; on a CPU, its product may be one in int8."""
        weight, centres = weight.detach().float(), isinstance(norm, LayerNorm)
        if isinstance(norm, LayerNorm) and norm.bias is not None:
            shift = weight @ norm.bias.float()
            bias = shift if bias is None else bias + shift
        if isinstance(norm, LayerNorm | RMSNorm):
            weight = weight * norm.weight.float()
        if isinstance(norm, RMSNorm) and weight.device.type == "cpu":
            weight = weight * weight.shape[1] ** 0.5
        weight = weight.to(dtype)
        bias = None if bias is None else bias.detach().to(dtype)
        prepacks_from = rows_to_prepack(weight)
        sliced = None
        if not int8 and prepacks_from != 1 and can_slice(weight):
            sliced = SlicedWeight.of(weight, bias)
            weight = sliced.weight
        elif weight.device.type == "cpu" and weight.shape[0] > weight.shape[1]:
            weight = weight.t().contiguous().t()  # read along its longer side by a single row
        return StepLinear(
            weight=weight,
            columns=weight.t(),
            bias=bias,
            norm=None if norm is None else "layer" if centres else "rms",
            epsilon=0.0 if norm is None else float(cast(LayerNorm | RMSNorm, norm).eps),
            sums=weight.float().sum(1) if centres else None,
            out=out,
            int8=quantised(weight) if int8 else None,
            sliced=sliced,
            prepacks_from=prepacks_from,
        )

    def __call__(
        self, x: Few, residual: Float[Tensor, "M out"] | None = None
    ) -> Float[Tensor, "M out"]:
        if x.is_cuda and len(x) <= self._few:
            from glassformer.core.steps.linear_kernel import run

            return run(
                x,
                self.weight,
                bias=self.bias,
                sums=self.sums,
                residual=residual,
                norm=self.norm,
                epsilon=self.epsilon,
                activation=None if self.activation is None else ACTIVATIONS[self.activation],
                gated=self.gated,
                out=self.out or self.weight.dtype,
            )
        return self.reference(x, residual)

    def reference(
        self, x: Few, residual: Float[Tensor, "M out"] | None = None
    ) -> Float[Tensor, "M out"]:
        """The same by functions of PyTorch."""
        y = self._product(*self._normed(x))
        if self.activation is not None and self.gated:
            gate, y = y.chunk(2, dim=-1)
            y = self.activation(gate).mul_(y)
        elif self.activation is not None:
            y = self.activation(y)
        y = y if residual is None else y + residual
        return y if self.out is None else y.to(self.out)

    def write(self, y: Float[Tensor, "M N"], x: Few) -> None:
        """Overwrite vectors with the product after the norm, without an activation."""
        single = self._single(x)
        if single is not None and single.whole:
            single.write(y, *self._normed(x))
        else:
            y.copy_(self._product(*self._normed(x)))

    def add_to(self, y: Float[Tensor, "M N"], x: Few) -> None:
        """Add the product, without a norm or an activation, to vectors in place."""
        single = self._single(x)
        if self.bias is not None or not self._is_plain(x):
            y.add_(self._product(x))
        elif single is not None and single.whole:
            single.add_to(y, x)
        else:
            y.addmm_(x, self.columns)

    def _normed(self, x: Few) -> tuple[Few, float]:
        """Vectors after the norm, but for a factor; it is 1 unless slices multiply by it."""
        if self.norm is None:
            return x, 1.0
        if self.norm == "layer":
            return F.layer_norm(x, x.shape[-1:], eps=self.epsilon), 1.0
        if x.is_cuda:
            return F.rms_norm(x, x.shape[-1:], eps=self.epsilon), 1.0
        if self._single(x) is None:
            return x / stretched_length(x, self.epsilon), 1.0
        row = x.view(-1)
        return x, (row.dot(row).item() + x.shape[1] * self.epsilon) ** -0.5

    @property
    def _few(self) -> int:
        """Vectors, up to which the kernel is the fastest way."""
        return FEW_GATED if self.gated and self.weight.dtype.itemsize < 4 else FEW

    def _single(self, x: Few) -> SlicedWeight | None:
        """The weight in slices, if the product uses it."""
        return self.sliced if x.shape[0] == 1 else None

    def _is_plain(self, x: Few) -> bool:
        """Whether the product uses the weight as it is."""
        few = self.prepacks_from is None or x.shape[0] < self.prepacks_from
        return self.int8 is None and few

    def _product(self, x: Few, scale: float = 1.0) -> Float[Tensor, "M N"]:
        single = self._single(x)
        if single is not None:
            return single(x, scale)
        if self.int8 is not None:
            return int8_product(x, self.int8, self.bias)
        if self.out is not None and x.is_cuda and self.bias is None and self.out != x.dtype:
            return torch.mm(x, self.columns, out_dtype=self.out)  # saves a copy, and is not rounded
        if self._is_plain(x):
            return x @ self.columns if self.bias is None else self.bias.addmm(x, self.columns)
        if not self.memo:
            self.memo["prepacked"] = prepacked(self.weight.contiguous())
        return prepacked_product(x, self.memo["prepacked"], self.bias)


def stretched_length(x: Few, epsilon: float) -> Float[Tensor, "M 1"]:
    """√(|x|² + D ε) of each vector: a norm in a third of the time PyTorch's takes on a CPU."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length.hypot_(_root(x.shape[-1] * epsilon))


@cache
def _root(number: float) -> Float[Tensor, ""]:
    return torch.tensor(number**0.5)
