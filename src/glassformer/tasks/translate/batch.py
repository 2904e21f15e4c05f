"""Batches of pairs: what is read, what is written so far, and what comes next."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._pytree import register_dataclass

from glassformer.core.layout import Layout
from glassformer.data.jagged import Jagged
from glassformer.data.samples import Sample
from glassformer.data.text.chinese import simplified
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.tasks.shared.batches import (
    LaidOutBatch,
    filled_pack,
    filler_rows,
    pad_first,
    text_batch,
)
from glassformer.tasks.shared.losses import IGNORED

References = tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class PairBatch(LaidOutBatch):
    """Rows of two sides, packed or padded.

    Attributes:
        source, source_layout: What is read, and its layout.
        decoder_input, target_layout: What is written, without its last token (teacher forcing),
            and its layout.
        labels: The next token at each real place of `decoder_input`, as one line; `IGNORED`
            counts nothing.
        row_ids: The row of the split that each row is.
        references: The right answers of each row as texts, one or several; none while training.
    """

    source: Int[Tensor, "B S"] | Int[Tensor, " read"] | Float[Tensor, "B S channels"]
    source_layout: Layout
    decoder_input: Int[Tensor, "B T"] | Int[Tensor, " written"]
    target_layout: Layout
    labels: Int[Tensor, " next"]
    row_ids: Int[Tensor, " rows"]
    references: References = ()

    @property
    def sizes(self) -> tuple[int, ...]:
        """Rows, the longest and all tokens of the source and of the target; none when padded."""
        source, target = self.source_layout, self.target_layout
        if not (source.is_packed and target.is_packed):
            return ()
        lengths = len(self.source), target.longest, len(self.decoder_input)
        return source.rows, source.longest, *lengths

    def filled(self, sizes: tuple[int, ...]) -> "PairBatch":
        """The same in a fixed shape: filler rows on both sides, whose labels are ignored."""
        rows, *(source_shape, target_shape) = sizes[0], sizes[1:3], sizes[3:]
        fillers = max(filler_rows(*source_shape), filler_rows(*target_shape))
        longest, tokens = source_shape
        source_shape = longest, tokens + fillers  # so that no filler of the target has none to see
        sides = (
            *filled_pack(self.source, self.source_layout, rows + fillers, *source_shape),
            *filled_pack(self.decoder_input, self.target_layout, rows + fillers, *target_shape),
        )
        labels = pad_first(self.labels, len(sides[2]), IGNORED)
        return PairBatch(*sides, labels, pad_first(self.row_ids, rows + fillers, -1))

    def twice(self) -> "PairBatch":
        """All rows, and then all of them again."""
        source, decoder_input, labels, row_ids = (
            torch.cat([x, x]) for x in (self.source, self.decoder_input, self.labels, self.row_ids)
        )
        layouts = self.source_layout.twice(), self.target_layout.twice()
        sides = source, layouts[0], decoder_input, layouts[1]
        return PairBatch(*sides, labels, row_ids, 2 * self.references)


register_dataclass(PairBatch)


def pair_batch(
    sources: Jagged,
    targets: Jagged,
    row_ids: Int[np.ndarray, " rows"],
    references: References = (),
    *,
    packed: bool,
) -> PairBatch:
    """Rows of tokens as a batch; targets come without start and end."""
    read = text_batch(sources, packed=packed)
    return written_batch(*read, targets, row_ids, references, packed=packed)


def written_batch(
    source: Tensor,
    source_layout: Layout,
    targets: Jagged,
    row_ids: Int[np.ndarray, " rows"],
    references: References = (),
    *,
    packed: bool,
) -> PairBatch:
    """What is read, and rows of tokens to be written for it."""
    decoder_input, target_layout = text_batch(targets.before(Tokenizer.start), packed=packed)
    labels = torch.from_numpy(targets.after(Tokenizer.end).values).long()
    sides = source, source_layout, decoder_input, target_layout
    return PairBatch(*sides, labels, torch.from_numpy(row_ids), references)


def right_answers(sample: Sample, *, in_simplified: bool = False) -> tuple[str, ...]:
    """The right answers to a sample: its target, and its references where it has some.

    >>> right_answers({"target": "R EH D", "references": ["R IY D", "R EH D"]})
    ('R EH D', 'R IY D')

    Args:
        in_simplified: Whether those in traditional Chinese are converted to simplified.
    """
    others = sample.get("references") or ()
    several = [others] if isinstance(others, str) else others
    texts = [sample["target"], *(text for text in several if text.strip())]
    return tuple(dict.fromkeys(map(simplified, texts) if in_simplified else texts))
