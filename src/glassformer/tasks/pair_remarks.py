"""What a person should know about pairs as a translator reads them: nothing is cut in silence."""

from collections.abc import Iterator

import numpy as np

from glassformer.data.ragged import Ragged
from glassformer.data.samples import Samples
from glassformer.data.text.tokenizer import Tokenizer

HELD_OUT = ("valid", "test")


def remarks_on(samples: Samples, sides: dict[str, Ragged], longest: int) -> Iterator[str]:
    """Texts that are cut, and targets that cannot be written.

    Args:
        sides: The tokens of every sample, by `source` and `target`.
        longest: Tokens of a text that are read or written.
    """
    for side, tokens in sides.items():
        cut = np.flatnonzero(tokens.lengths > longest)
        if len(cut):
            yield (
                f"{len(cut):,} texts of the {side} side have more than task.max_length = "
                f"{longest:,} tokens and are cut there, the first is "
                f"{samples[int(cut[0])]['where']}; the longest has {tokens.lengths.max():,}"
            )
    rows = np.concatenate([samples.rows(part) for part in HELD_OUT]).tolist()
    lacking = [row for row in rows if (sides["target"][row] == Tokenizer.unknown).any()]
    if lacking:
        yield (
            f"{len(lacking):,} of {len(rows):,} targets held out have something that no training "
            f"row has, so that they cannot be written; the first is {samples[lacking[0]]['where']}"
        )
