"""Masking: which tokens of a row are masked, and by what.

Whole words are chosen, so that a token cannot be predicted from the rest of its word. Of the chosen
tokens, most are masked, some replaced by another and some kept, since texts have no masks when the
encoder is used. Devlin et al., 2018.

All rows of a batch are masked together, end to end; `noise` is uniform in [0, 1), per token.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from glassformer.data.jagged import Jagged

Ids = Int[np.ndarray, " tokens"]
Chosen = Bool[np.ndarray, " tokens"]
Noise = Float[np.ndarray, " tokens"]

REPLACED, KEPT = 0.1, 0.1


def choose_words(words: Jagged, share: float, noise: Noise) -> Chosen:
    """The tokens of a share of the words, at least one word of each row.

    Args:
        words: Each token's word index, counted through all rows.
        noise: That of its first token decides about a word.
    """
    first = np.flatnonzero(np.diff(words.values, prepend=-1))
    of_word, row = noise[first], words.row_of[first]
    least = np.ones(len(words.lengths))
    np.minimum.at(least, row, of_word)  # if none is below the share, any word may be this
    chosen = (of_word < share) | (of_word == least[row])
    return chosen[words.values]


def hide(ids: Ids, chosen: Chosen, mask: int, others: range, noise: Noise) -> Ids:
    """The tokens, the chosen ones masked, replaced by one of `others`, or kept."""
    other = others.start + (noise * (len(others) / REPLACED)).astype(np.int64)  # where replaced
    shown = np.where(noise < REPLACED, other, np.where(noise < REPLACED + KEPT, ids, mask))
    return np.where(chosen, shown, ids)


def worth_predicting(ids: Jagged, chosen: Chosen, unknown: int) -> Chosen:
    """The chosen tokens that are known; in rows where none is, all that are chosen."""
    row = ids.row_of
    known = chosen & (ids.values != unknown)
    some_known = np.bincount(row[known], minlength=len(ids.lengths)) > 0
    return known | (chosen & ~some_known[row])
