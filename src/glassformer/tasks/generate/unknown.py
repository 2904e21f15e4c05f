"""What tokens cannot stand for: the bytes of unknown characters, and what is said about them.

A token has the bytes that it stands for, an unknown one those of the text at its place. Scores by
the byte are then of the same text, whatever the tokens are.
"""

from collections.abc import Callable, Iterable
from itertools import chain

import numpy as np
from jaxtyping import Int

from glassformer.data.samples import SPLITS, Samples
from glassformer.data.shards import Shards
from glassformer.data.text.tokenizer import LOSSLESS, Tokenizer
from glassformer.tasks.shared.losses import IGNORED

Numbers = Int[np.ndarray, " _"]  # no name: windows have different lengths

NEGLIGIBLE = 0.01  # of the characters
SHOWN = 5  # characters


class TextSizes:
    """The bytes of text of the tokens of documents.

    Args:
        texts: The texts of some of the documents.
    """

    def __init__(self, tokenizer: Tokenizer, texts: Callable[[Numbers], Iterable[str]]) -> None:
        self.tokenizer, self.texts = tokenizer, texts
        self.known = np.array([len(token) for token in tokenizer.coder.tokens], dtype=np.int32)

    def of(self, labels: Numbers, document: Numbers) -> Numbers:
        """The bytes of the tokens of whole documents, in order; what is ignored has none."""
        sizes = np.where(labels == IGNORED, 0, self.known[np.maximum(labels, 0)])
        unknown = labels == Tokenizer.unknown
        if unknown.any():
            texts = self.texts(np.unique(document[unknown]))
            pieces = (piece for text in texts for piece in unknown_pieces(self.tokenizer, text))
            found = np.array([len(piece.encode()) for piece in pieces], dtype=np.int32)
            if len(found) == unknown.sum():  # or the texts were tokenised by an older version
                sizes[unknown] = found
        return sizes


def unknown_remark(tokenizer: Tokenizer, samples: Samples, tokens: Shards) -> str | None:
    """What to say of texts of which a good part is unknown, by the first split with such texts."""
    if tokenizer.kind in LOSSLESS:
        return None
    counts = tokens.count(Tokenizer.unknown)
    for split in SPLITS:
        rows = samples.rows(split)
        share = counts[rows].sum() / max(1, tokens.lengths[rows].sum())
        if share >= NEGLIGIBLE:
            some = samples.take(rows[counts[rows] > 0].tolist())
            found = chain.from_iterable(unknown_pieces(tokenizer, one["text"]) for one in some)
            where = f" of the {split} split" if len(samples.rows("train")) else ""
            return (
                f"{share:.1%} of the characters{where} have no token of this model: "
                f"{examples(found)}"
            )
    return None


def unknown_pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    """What each unknown token of a text stands for.

    >>> tokenizer = Tokenizer.train("characters", ["what a film"], vocabulary=100)
    >>> unknown_pieces(tokenizer, "a café!")
    ['c', 'é', '!']
    """
    if tokenizer.kind in LOSSLESS:
        return []
    [ids] = tokenizer.encode([text])
    unknown = ids == Tokenizer.unknown
    if not unknown.any():
        return []
    cleaned = tokenizer.clean(text)
    return [cleaned[start:end] for start, end in tokenizer.spans(cleaned)[unknown].tolist()]


def examples(pieces: Iterable[str]) -> str:
    """The first few different ones.

    >>> examples("Mississippi is"), examples("aaa")
    ("'M', 'i', 's', 'p', ' '", "'a'")
    """
    found = dict[str, None]()
    for piece in pieces:
        found[piece] = None
        if len(found) == SHOWN:
            break
    return ", ".join(map(repr, found))
