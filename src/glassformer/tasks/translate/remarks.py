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
    rows = np.concatenate([samples.rows(split) for split in HELD_OUT]).tolist()
    lacking = [row for row in rows if (sides["target"][row] == Tokenizer.unknown).any()]
    if lacking:
        yield (
            f"{len(lacking):,} of {len(rows):,} targets held out have something that the tokens of "
            f"this run cannot write; the first is {samples[lacking[0]]['where']}"
        )


def remarks_on_scores(measure: str, target: Tokenizer) -> Iterator[str]:
    """What scores go by, where a person may not expect it."""
    if measure == "symbols":
        yield (
            "targets are taken for words spelt in symbols, and scored so; if they are sentences, "
            "use --set task.measure=text --set task.target.kind=bpe"
        )
    if target.lowercase:
        yield "answers are written in lower case, and scored against targets as they are"
