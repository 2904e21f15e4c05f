"""The losses: CTC over the frames, cross-entropy over the tokens, and a weighted sum of both.

    loss = w CTC + (1 - w) attention          Kim et al., "Joint CTC-Attention", 2017
    CTC  = (1 - i) last + i halfway           Lee and Watanabe, "Intermediate Loss", 2021

CTC is computed in fp32, from lengths that are known on the CPU. A row with fewer frames than its
text needs has no path, and an infinite loss: such rows are left out when the data are indexed.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer import processes
from glassformer.decode.ctc import deterministic_ctc_loss
from glassformer.models.transcriber import Scored
from glassformer.tasks.shared.losses import token_loss
from glassformer.tasks.task import Loss
from glassformer.tasks.transcribe.settings import TranscribeConfig
from glassformer.tasks.transcribe.sounds import BLANK, SoundBatch

SUM = 2  # how PyTorch calls this reduction
FRAMES_A_TOKEN = 16  # before training: all but one are blank


def joint_loss(output: Scored, batch: SoundBatch, config: TranscribeConfig) -> Loss:
    """The weighted sum of the losses, over the tokens of the texts and their ends."""
    weight, count = config.ctc_weight, token_count(batch)
    total = 0.0 * output.frames.float().sum()  # processes wait for a gradient of every weight
    if weight:
        ctc = ctc_loss(output.frames, batch)
        if output.halfway is not None:
            ctc = torch.lerp(ctc, ctc_loss(output.halfway, batch), config.intermediate)
        total = total + weight * ctc
    if output.written is not None:
        smoothing = config.label_smoothing
        attention = token_loss(output.written, batch.next_tokens, smoothing=smoothing)
        total = total + (1 - weight) * attention.total
    return Loss(total, count)


def ctc_loss(frames: Float[Tensor, "B S V"], batch: SoundBatch) -> Float[Tensor, ""]:
    """The negative log-probability of all texts, each summed over its paths."""
    log_probs, labels = frames.float().log_softmax(-1), batch.labels
    lengths = (batch.vectors, batch.counts)
    if frames.is_cuda and torch.are_deterministic_algorithms_enabled():  # PyTorch's kernel is not
        on_device = (torch.tensor(length, device=frames.device) for length in lengths)
        return deterministic_ctc_loss(log_probs, labels, *on_device, blank=BLANK).sum()
    return torch.ctc_loss(log_probs.transpose(0, 1), labels, *lengths, BLANK, SUM)


@torch.no_grad()
def expect_blanks(to_token: nn.Linear) -> None:
    """Let blanks be as frequent at the start as CTC makes them first.

    Otherwise all weights learn to say blank everywhere before they learn anything else, and lose
    much of what tells frames apart (docs/dev/log.md).
    """
    to_token.bias.zero_()
    to_token.bias[BLANK] = math.log((FRAMES_A_TOKEN - 1) * to_token.out_features)


def joint_divergence(a: Scored, b: Scored, batch: SoundBatch, *, weight: float) -> Loss:
    """The weighted sum of D(a || b) over frames and over tokens."""
    device = a.frames.device
    ends = torch.tensor(batch.vectors, device=device)[:, None]
    real = torch.arange(a.frames.shape[1], device=device) < ends  # (B, S)
    total = weight * divergence(a.frames, b.frames).masked_fill(~real, 0.0).sum()
    if a.written is not None and b.written is not None:
        total = total + (1 - weight) * divergence(a.written, b.written).sum()
    return Loss(total, token_count(batch))


def token_count(batch: SoundBatch) -> Float[Tensor, ""]:
    """How many tokens the texts and their ends have; filled in without waiting for the device."""
    return torch.full((), float(len(batch.next_tokens)), device=batch.next_tokens.device)


def divergence(a: Float[Tensor, "*places V"], b: Float[Tensor, "*places V"]) -> Tensor:
    """D(a || b) of scores, in fp32."""
    log_a, log_b = a.float().log_softmax(-1), b.float().log_softmax(-1)
    return (log_a.exp() * (log_a - log_b)).sum(-1)


class MeanLoss:
    """The mean loss over batches that pass by, of all processes that share them.

    A batch with a text that has no path is left out.
    """

    def __init__(self, loss_of: Callable[[SoundBatch], Loss]) -> None:
        self.loss_of = loss_of
        self.sums: list[tuple[float, float]] = []

    def beside(self, batches: Iterable[SoundBatch]) -> Iterator[SoundBatch]:
        """The same batches, whose losses are added up."""
        for batch in batches:
            loss = self.loss_of(batch)
            total, count = float(loss.total.detach()), float(loss.count)
            if math.isfinite(total):
                self.sums.append((total, count))
            yield batch

    def mean(self) -> float:
        """NaN if there was no batch."""
        sums = processes.gathered_rows(self.sums)
        tokens = sum(count for _, count in sums)
        return sum(total for total, _ in sums) / tokens if tokens else math.nan
