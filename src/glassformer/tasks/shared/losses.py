"""Losses of jobs that score a vocabulary at each place of a batch."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.tasks.task import Loss

IGNORED = -100  # a label that counts nothing, as PyTorch's cross-entropy has it


def token_loss(
    output: Float[Tensor, "places V"], labels: Int[Tensor, " places"], *, smoothing: float = 0.0
) -> Loss:
    """Cross-entropy of the right tokens, in fp32, over those that are not ignored."""
    total = F.cross_entropy(output.float(), labels, reduction="sum", label_smoothing=smoothing)
    return Loss(total, (labels != IGNORED).sum().float())


def token_divergence(
    a: Float[Tensor, "places V"], b: Float[Tensor, "places V"], labels: Int[Tensor, " places"]
) -> Loss:
    """D(a || b) of the scores, in fp32, over the labels that are not ignored."""
    log_a, log_b = a.float().log_softmax(-1), b.float().log_softmax(-1)
    apart, counts = (log_a.exp() * (log_a - log_b)).sum(-1), labels != IGNORED
    return Loss(apart.masked_fill(~counts, 0.0).sum(), counts.sum().float())
