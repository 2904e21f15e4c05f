"""Remarks about pairs as a translator reads them: nothing is truncated silently."""

from collections.abc import Iterator

import numpy as np

from glassformer.data.ragged import Ragged
from glassformer.data.samples import Samples
from glassformer.data.text.tokenizer import Tokenizer

HELD_OUT = ("valid", "test")


def remarks_on(samples: Samples, sides: dict[str, Ragged], longest: int) -> Iterator[str]:
    """Texts that are truncated, and targets that cannot be generated.

    Args:
        sides: The tokens of every sample, by `source` and `target`.
        longest: The maximum number of tokens of a text.
    """
    for side, tokens in sides.items():
        cut = np.flatnonzero(tokens.lengths > longest)
        if len(cut):
            yield (
                f"{len(cut):,} {side} texts have more than task.max_length = "
                f"{longest:,} tokens and are truncated, the first at "
                f"{samples[int(cut[0])]['where']}; the longest has {tokens.lengths.max():,}"
            )
    rows = np.concatenate([samples.rows(split) for split in HELD_OUT]).tolist()
    unwritable = [row for row in rows if (sides["target"][row] == Tokenizer.unknown).any()]
    if unwritable:
        yield (
            f"{len(unwritable):,} of {len(rows):,} validation and test targets contain something "
            f"outside the vocabulary; the first is {samples[unwritable[0]]['where']}"
        )


def remarks_on_scores(measure: str, target: Tokenizer) -> Iterator[str]:
    """How answers are scored, where that may be unexpected."""
    if measure == "symbols":
        yield (
            "targets look like words spelt in symbols, and are scored as such; if they are "
            "sentences, use --set task.measure=text --set task.target.kind=bpe"
        )
    if target.lowercase:
        yield "answers are in lower case, but are scored against targets in their original case"
