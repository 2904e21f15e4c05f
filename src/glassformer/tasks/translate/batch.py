"""Batches of pairs: what is read, what is written so far, and what comes next."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.data.jagged import Jagged
from glassformer.data.samples import Sample
from glassformer.data.text.chinese import simplified
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.shared.text import text_batch

Meant = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Rows of two sides, packed or padded.

    Attributes:
        source, reads: What is read, and its layout.
        told, writes: What is written, without its last token, and its layout (teacher forcing).
        truth: The next token at each real place of `told`, as one line.
        owners: The row of the part that each row is.
        meant: The right answers of each row as texts, one or several; none while training.
    """

    source: Int[Tensor, "B S"] | Int[Tensor, " read"]
    reads: Layout
    told: Int[Tensor, "B T"] | Int[Tensor, " written"]
    writes: Layout
    truth: Int[Tensor, " next"]
    owners: Int[Tensor, " rows"]
    meant: Meant = ()

    @property
    def tokens(self) -> int:
        """How many there are on both sides, without padding."""
        assert self.reads.tokens is not None
        assert self.writes.tokens is not None
        return self.reads.tokens + self.writes.tokens

    def to(self, device: torch.device) -> "PairBatch":
        """The same on another device."""
        return PairBatch(
            self.source.to(device, non_blocking=True),
            self.reads.to(device),
            self.told.to(device, non_blocking=True),
            self.writes.to(device),
            self.truth.to(device, non_blocking=True),
            self.owners.to(device, non_blocking=True),
            self.meant,
        )


def pair_batch(
    sources: Jagged,
    targets: Jagged,
    owners: Int[np.ndarray, " rows"],
    meant: Meant = (),
    *,
    packed: bool,
) -> PairBatch:
    """Rows of tokens as a batch; targets come without start and end."""
    source, reads = text_batch(sources, packed=packed)
    told, writes = text_batch(targets.before(Tokenizer.start), packed=packed)
    truth = torch.from_numpy(targets.after(Tokenizer.end).values).long()
    return PairBatch(source, reads, told, writes, truth, torch.from_numpy(owners), meant)


def right_answers(sample: Sample, *, in_simplified: bool = False) -> tuple[str, ...]:
    """What may be said of a sample: its target, and its references where it has some.

    >>> right_answers({"target": "R EH D", "references": ["R IY D", "R EH D"]})
    ('R EH D', 'R IY D')

    Args:
        in_simplified: Whether those in traditional Chinese are to be said in simplified.
    """
    others = sample.get("references") or ()
    several = [others] if isinstance(others, str) else others
    texts = [sample["target"], *(text for text in several if text.strip())]
    return tuple(dict.fromkeys(map(simplified, texts) if in_simplified else texts))
