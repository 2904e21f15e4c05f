"""Muon: orthogonalised updates for matrices, equally large in all directions. Jordan, 2024.

PyTorch's implementation computes in bf16 on every device, which is slow on most CPUs and crashes on
some; this one computes in bf16 on a GPU and in fp32 elsewhere.
"""

import math
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.optim import Optimizer

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # of the quintic that is steepest at zero
ITERATIONS = 5
MOMENTUM = 0.95


class Muon(Optimizer):
    """Orthogonalised Nesterov momentum, scaled to the size of AdamW's steps to share its rate.

    Args:
        weights: Matrices.
    """

    def __init__(self, weights: Iterable[nn.Parameter], *, lr: float, weight_decay: float) -> None:
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every matrix that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(weight.grad)
                momentum = state["momentum_buffer"].lerp_(weight.grad, 1 - MOMENTUM)
                update = orthogonal(weight.grad.lerp(momentum, MOMENTUM))
                scale = 0.2 * math.sqrt(
                    max(weight.shape)
                )  # the RMS of AdamW's updates is about 0.2
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * scale)


def orthogonal(matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """Approximately U V^T of the SVD U S V^T, by Newton-Schulz iterations."""
    a, b, c = COEFFICIENTS
    x = matrix.bfloat16() if matrix.is_cuda else matrix
    x = x.T if len(x) > x.shape[1] else x
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if len(matrix) > matrix.shape[1] else x
