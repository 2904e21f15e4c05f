"""Muon: orthogonal steps for matrices, so that all directions learn at one pace. Jordan, 2024.

PyTorch's own computes in bf16 on every device, which some CPUs do not survive and most are slow at;
this one computes in bf16 on a GPU and in fp32 elsewhere.
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
    """Nesterov momentum, made orthogonal; steps as large as AdamW's, so that one rate serves both.

    Args:
        weights: Matrices.
    """

    def __init__(self, weights: Iterable[nn.Parameter], *, lr: float, weight_decay: float) -> None:
        super().__init__(weights, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Move every matrix that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                memory = self.state[weight]
                if "momentum_buffer" not in memory:
                    memory["momentum_buffer"] = torch.zeros_like(weight.grad)
                momentum = memory["momentum_buffer"].lerp_(weight.grad, 1 - MOMENTUM)
                update = orthogonal(weight.grad.lerp(momentum, MOMENTUM))
                scale = 0.2 * math.sqrt(max(weight.shape))  # AdamW's steps are about 0.2 a weight
                weight.mul_(1 - group["lr"] * group["weight_decay"])
                weight.add_(update, alpha=-group["lr"] * scale)


def orthogonal(matrix: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """Nearly U V^T of the singular value decomposition U S V^T, by Newton-Schulz iterations."""
    a, b, c = COEFFICIENTS
    x = matrix.bfloat16() if matrix.is_cuda else matrix
    x = x.T if len(x) > x.shape[1] else x
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if len(matrix) > matrix.shape[1] else x
