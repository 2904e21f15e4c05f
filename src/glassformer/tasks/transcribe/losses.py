"""The losses: CTC over the frames, cross-entropy over the tokens, and a weighted sum of both.

    loss = w CTC + (1 - w) attention          Kim et al., "Joint CTC-Attention", 2017

CTC is computed in fp32, from lengths that are known on the CPU. A row with fewer frames than its
text needs has no path, and an infinite loss: such rows are left out when the data are indexed.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.tasks.shared.losses import token_loss
from glassformer.tasks.task import Loss
from glassformer.tasks.transcribe.sounds import BLANK, SoundBatch

Output = tuple[Float[Tensor, "B S V"], Float[Tensor, "next V"] | None]  # of frames, of next tokens


def joint_loss(output: Output, batch: SoundBatch, *, weight: float, smoothing: float) -> Loss:
    """The weighted sum of both losses, over the tokens of the texts and their ends."""
    frames, written = output
    count = batch.row_ids.new_tensor(len(batch.next_tokens)).float()
    if written is None:
        return Loss(ctc_loss(frames, batch), count)
    attention = token_loss(written, batch.next_tokens, smoothing=smoothing).total
    if not weight:
        return Loss(attention, count)
    return Loss(weight * ctc_loss(frames, batch) + (1 - weight) * attention, count)


def ctc_loss(frames: Float[Tensor, "B S V"], batch: SoundBatch) -> Float[Tensor, ""]:
    """The negative log-probability of all texts, each summed over its paths."""
    return F.ctc_loss(
        frames.float().log_softmax(-1).transpose(0, 1),
        batch.labels,
        torch.tensor(batch.vectors),  # read on the CPU
        torch.tensor(batch.counts),
        blank=BLANK,
        reduction="sum",
    )


def joint_divergence(a: Output, b: Output, batch: SoundBatch, *, weight: float) -> Loss:
    """The weighted sum of D(a || b) over frames and over tokens."""
    ends = torch.tensor(batch.vectors, device=a[0].device)[:, None]
    real = torch.arange(a[0].shape[1], device=a[0].device) < ends  # (B, S)
    count = batch.row_ids.new_tensor(len(batch.next_tokens)).float()
    total = weight * divergence(a[0], b[0]).masked_fill(~real, 0.0).sum()
    if a[1] is not None and b[1] is not None:
        total = total + (1 - weight) * divergence(a[1], b[1]).sum()
    return Loss(total, count)


def divergence(a: Float[Tensor, "*places V"], b: Float[Tensor, "*places V"]) -> Tensor:
    """D(a || b) of scores, in fp32."""
    log_a, log_b = a.float().log_softmax(-1), b.float().log_softmax(-1)
    return (log_a.exp() * (log_a - log_b)).sum(-1)
