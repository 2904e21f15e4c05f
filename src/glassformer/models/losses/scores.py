"""Cross-entropy and divergence of given scores, summed over the tokens that count."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.utils._triton import has_triton

from glassformer.core.scoring import capped

if has_triton():
    from glassformer.models.losses import score_kernel

IGNORED = -100  # a label that counts nothing, as PyTorch's cross-entropy has it


def cross_entropy(
    scores: Float[Tensor, "N V"], labels: Int[Tensor, " N"], *, smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """The cross-entropy of the labels, in fp32.

    Args:
        smoothing: Share of each label that is spread over the whole vocabulary.
    """
    if not wants_gradients(scores) or (torch.compiler.is_compiling() and not has_kernels(scores)):
        return F.cross_entropy(
            scores.float(), labels, reduction="sum", label_smoothing=smoothing, ignore_index=IGNORED
        )
    gradient = torch.empty_like(scores, memory_format=torch.contiguous_format)
    with torch.no_grad():
        losses = losses_and_gradients(scores.detach(), labels, gradient, None, smoothing)
    return with_gradients(losses.sum(), [scores], [gradient])


def losses_and_gradients(
    scores: Float[Tensor, "n V"],
    labels: Int[Tensor, " n"],
    gradients: Float[Tensor, "n V"],
    softcap: float | None,
    smoothing: float,
) -> Float[Tensor, " n"]:
    """The cross-entropy of each label, and into `gradients`, which may be the scores, theirs."""
    if has_kernels(scores) and softcap is None:
        return score_kernel.cross_entropy(scores, labels, smoothing, gradients)
    x = capped(scores.float(), softcap)
    counts, right = labels != IGNORED, labels.clamp(min=0)
    each, spread = torch.arange(len(x), device=x.device), smoothing / x.shape[1]
    log_p = x.log_softmax(-1)
    losses = -(1 - smoothing) * log_p[each, right] - spread * log_p.sum(-1)
    gradient = log_p.exp_().sub_(spread)
    gradient[each, right] -= 1 - smoothing
    if softcap is not None:
        gradient *= 1 - (x / softcap) ** 2
    gradients.copy_(gradient.mul_(counts[:, None]))
    return losses * counts


def divergence(
    a: Float[Tensor, "N V"], b: Float[Tensor, "N V"], labels: Int[Tensor, " N"]
) -> Float[Tensor, ""]:
    """D(a || b) of the softmax of two tables of scores, in fp32."""
    if not (has_kernels(a) and (wants_gradients(a) or wants_gradients(b))):
        log_a, log_b = a.float().log_softmax(-1), b.float().log_softmax(-1)
        apart = (log_a.exp() * (log_a - log_b)).sum(-1)
        return apart.masked_fill(labels == IGNORED, 0.0).sum()
    gradients = [torch.empty_like(x, memory_format=torch.contiguous_format) for x in (a, b)]
    apart = score_kernel.divergence(a.detach(), b.detach(), labels, *gradients)
    return with_gradients(apart.sum(), [a, b], gradients)


def wants_gradients(scores: Tensor) -> bool:
    """Whether gradients will flow back to these scores."""
    return scores.requires_grad and torch.is_grad_enabled()


def has_kernels(scores: Tensor) -> bool:
    """Whether scores are on a GPU that kernels are written for."""
    return scores.is_cuda and has_triton()


def with_gradients(
    total: Float[Tensor, ""], inputs: Sequence[Tensor], gradients: Sequence[Tensor]
) -> Float[Tensor, ""]:
    """A sum that was computed together with its gradients."""
    found: Tensor = KnownGradients.apply(total, *inputs, *gradients)
    return found


class KnownGradients(torch.autograd.Function):
    """A sum, the inputs that it was computed from, and its gradient for each.

    On a GPU the gradients are scaled where they lie, so that there is one backward pass only.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, total: Tensor, *tensors: Tensor) -> Tensor:
        """The sum, with its gradients kept for the backward pass."""
        ctx.save_for_backward(*tensors[len(tensors) // 2 :])
        return total.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        known = ctx.saved_tensors
        if grad.is_cuda and has_triton():
            if getattr(ctx, "scaled", False):
                raise RuntimeError("a loss that was computed with its gradients has one backward")
            ctx.scaled = True
            for gradient in known:
                score_kernel.scale(gradient, grad)
        else:
            known = [gradient * grad.to(gradient.dtype) for gradient in known]
        return None, *known, *(None,) * len(known)
