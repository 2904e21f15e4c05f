"""Sounds as a model reads them: batches of features, with their texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, everything
from glassformer.data.audio.extractor import Features
from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.shared.batches import text_batch
from glassformer.tasks.shared.sound import padded_features, vectors_of

BLANK = Tokenizer.mask  # which no transcript has

Tokens = Int[np.ndarray, " _"]


def writable(log_probs: Float[Tensor, "*frames V"]) -> Float[Tensor, "*frames V"]:
    """The log-probabilities of what CTC may write: any token but the unknown one."""
    unknown = torch.tensor(Tokenizer.unknown, device=log_probs.device)
    return log_probs.index_fill(-1, unknown, -torch.inf)


@dataclass(frozen=True, slots=True)
class SoundBatch:
    """Some recordings and their texts, padded. Lengths are known without asking the device.

    Attributes:
        features, layout: Mel features, and where they lie.
        vectors: How many vectors the frontend makes of each recording.
        decoder_input, target_layout: The texts without their ends (teacher forcing).
        next_tokens: The next token at each real place of `decoder_input`, as one line.
        labels, counts: The tokens of the texts, padded, and how many each has.
        row_ids: The row of the split that each row is.
        mask: What the encoder sees.
        references: The right texts, normalised; none while training.
    """

    features: Float[Tensor, "B frames M"]
    layout: Layout
    vectors: tuple[int, ...]
    decoder_input: Int[Tensor, "B T"]
    target_layout: Layout
    next_tokens: Int[Tensor, " next"]
    labels: Int[Tensor, "B L"]
    counts: tuple[int, ...]
    row_ids: Int[Tensor, " B"]
    mask: Mask
    references: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """How many vectors are read and tokens written, without padding."""
        return sum(self.vectors) + sum(self.counts) + len(self.counts)

    def to(self, device: torch.device) -> "SoundBatch":
        """The same on another device."""
        names = ("features", "decoder_input", "next_tokens", "labels", "row_ids")
        moved = {name: getattr(self, name).to(device, non_blocking=True) for name in names}
        layouts = {name: getattr(self, name).to(device) for name in ("layout", "target_layout")}
        return replace(self, **moved, **layouts)


def sound_batch(
    sounds: Sequence[Features],
    texts: Sequence[Tokens],
    row_ids: Int[np.ndarray, " B"],
    references: Sequence[str] = (),
    *,
    factor: int,
    mask: Mask = everything,
) -> SoundBatch:
    """A batch of features and tokens.

    Args:
        factor: Frames that become one vector.
    """
    features, layout = padded_features(sounds)
    targets = Jagged.of([np.asarray(text, dtype=np.int64) for text in texts])
    decoder_input, target_layout = text_batch(targets.before(Tokenizer.start), packed=False)
    return SoundBatch(
        features,
        layout,
        tuple(vectors_of(len(sound), factor) for sound in sounds),
        decoder_input,
        target_layout,
        torch.from_numpy(targets.after(Tokenizer.end).values).long(),
        text_batch(targets, packed=False)[0],
        tuple(targets.lengths.tolist()),
        torch.from_numpy(row_ids),
        mask,
        tuple(references),
    )
