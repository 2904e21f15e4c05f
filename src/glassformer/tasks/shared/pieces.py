"""Pieces of a text, which an explanation colours and leaves out: its words as they are written."""

from itertools import pairwise

import numpy as np
from jaxtyping import Int

from glassformer.data.text.tokenizer import Tokenizer


def text_pieces(
    tokens: Tokenizer, text: str, longest: int | None = None
) -> tuple[tuple[str, ...], Int[np.ndarray, " tokens"]]:
    """The words of a text, each with the blank before it, and the word of each token.

    Joined, they are the text. A text of a single word, such as a name, is split into its tokens.

    Args:
        longest: How many of its tokens are read; by default all.

    >>> tokens = Tokenizer.train("characters", ["what a film"], vocabulary=100)
    >>> text_pieces(tokens, "A film!")
    (('A', ' film', '!'), array([0, 1, 1, 1, 1, 1, 2]))
    >>> text_pieces(tokens, "film")[0]
    ('f', 'i', 'l', 'm')
    """
    read = tokens.clean(text)
    [ids] = tokens.encode([text])
    if not len(ids):
        return (), np.zeros(0, dtype=np.int64)
    numbers, ends = tokens.word_of(ids), tokens.ends(read)
    ends[-1] = len(read)  # with blanks at the end
    if numbers[-1] == 0 and len(np.unique(ends)) == len(ends):
        numbers = np.arange(len(ids))
    numbers, ends = numbers[:longest], ends[:longest]
    last = np.append(np.flatnonzero(np.diff(numbers)), len(numbers) - 1)
    shown = text if len(text) == len(read) else read  # as it was before its case was changed
    bounds = pairwise([0, *ends[last].tolist()])
    return tuple(shown[start:end] for start, end in bounds), numbers
