"""A linear layer for few vectors, with the norm before it and what follows it.

    y = residual + f(norm(x) Wᵀ + b)        f the activation; gated, f(first half) * second half

The weights of the norm are folded into W and b, so that it only has to centre and scale x. On a
CPU, so is the √D of an RMSNorm, which then divides x by √(|x|² + D ε).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.feedforward import gelu_tanh, relu_squared
from glassformer.core.gelu import gelu
from glassformer.core.int8 import Int8Linear
from glassformer.core.norms import LayerNorm, RMSNorm
from glassformer.core.prepacked import rows_to_prepack
from glassformer.core.steps.products import Few, Product, product_of
from glassformer.core.steps.sliced import SlicedWeight, can_slice

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
        product: That with the weight and bias, for any number of vectors.
        sliced: The weight for a single vector; None where there is nothing faster.
        norm: "rms", "layer" or none.
        sums: Of each row of the weight, if the norm centres.
        out: The type of the result; that of the weight by default.
    """

    weight: Float[Tensor, "N D"]
    bias: Float[Tensor, " N"] | None = None
    product: Product
    sliced: SlicedWeight | None = None
    norm: str | None = None
    epsilon: float = 0.0
    sums: Float[Tensor, " N"] | None = None
    activation: Callable[[Tensor], Tensor] | None = None
    gated: bool = False
    out: torch.dtype | None = None

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
        sliced = None
        if not int8 and rows_to_prepack(weight) != 1 and can_slice(weight):
            sliced = SlicedWeight.of(weight, bias)
            weight = sliced.weight
        elif weight.device.type == "cpu" and weight.shape[0] > weight.shape[1]:
            weight = weight.t().contiguous().t()  # read along its longer side by a single row
        return StepLinear(
            weight=weight,
            bias=bias,
            product=product_of(weight, bias, out=out, int8=int8),
            sliced=sliced,
            norm=None if norm is None else "layer" if centres else "rms",
            epsilon=0.0 if norm is None else float(cast(LayerNorm | RMSNorm, norm).eps),
            sums=weight.float().sum(1) if centres else None,
            out=out,
        )

    def with_weight(
        self, weight: Float[Tensor, "N D"], bias: Float[Tensor, " N"] | None
    ) -> "StepLinear":
        """The same with another weight, on a CPU and without slices."""
        product = product_of(weight, bias, out=self.out)
        return replace(self, weight=weight, bias=bias, product=product, sliced=None)

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
        if single is None or (self.bias is None and not single.whole):
            self.product.add_to(y, x)
        elif self.bias is None:
            single.add_to(y, x)
        else:
            y.add_(single(x))

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

    def _product(self, x: Few, scale: float = 1.0) -> Float[Tensor, "M N"]:
        single = self._single(x)
        return self.product.multiply(x) if single is None else single(x, scale)


def stretched_length(x: Few, epsilon: float) -> Float[Tensor, "M 1"]:
    """√(|x|² + D ε) of each vector: a norm in a third of the time PyTorch's takes on a CPU."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return length.hypot_(_root(x.shape[-1] * epsilon))


@cache
def _root(number: float) -> Float[Tensor, ""]:
    return torch.tensor(number**0.5)
