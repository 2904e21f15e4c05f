"""Losses of jobs that score a vocabulary at each place of a batch."""

from jaxtyping import Float, Int
from torch import Tensor

from glassformer.models.losses import IGNORED, cross_entropy, divergence
from glassformer.tasks.task import Loss


def token_loss(
    output: Float[Tensor, "places V"], labels: Int[Tensor, " places"], *, smoothing: float = 0.0
) -> Loss:
    """Cross-entropy of the right tokens, in fp32, over those that are not ignored."""
    return Loss(cross_entropy(output, labels, smoothing=smoothing), counted(labels))


def smoothing_note(smoothing: float) -> str | None:
    """Why a loss with label smoothing is not the validation loss; None without smoothing."""
    if not smoothing:
        return None
    return (
        f"The training objective includes label smoothing ({smoothing:g}), which the validation "
        f"loss leaves out: it is larger by design, and the two cannot be compared."
    )


def token_divergence(
    a: Float[Tensor, "places V"], b: Float[Tensor, "places V"], labels: Int[Tensor, " places"]
) -> Loss:
    """D(a || b) of the scores, in fp32, over the labels that are not ignored."""
    return Loss(divergence(a, b, labels), counted(labels))


def counted(labels: Int[Tensor, " places"]) -> Float[Tensor, ""]:
    """How many labels are not ignored."""
    return (labels != IGNORED).sum().float()
