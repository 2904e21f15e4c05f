"""Masking: which tokens of a row are masked, and by what.

Whole words are chosen, so that a token cannot be predicted from the rest of its word. Of the chosen
tokens, most are masked, some replaced by another and some kept, since texts have no masks when the
encoder is used. Devlin et al., 2018.
"""

import numpy as np
from jaxtyping import Bool, Int

Ids = Int[np.ndarray, " tokens"]

REPLACED, KEPT = 0.1, 0.1


def choose_words(
    word: Int[np.ndarray, " tokens"], share: float, rng: np.random.Generator
) -> Bool[np.ndarray, " tokens"]:
    """The tokens of a share of the words, at least one word; `word` is each token's word index."""
    words = int(word[-1]) + 1 if len(word) else 0
    if not words:
        return np.zeros(0, dtype=bool)
    chosen = rng.random(words) < share
    if not chosen.any():
        chosen[rng.integers(words)] = True
    return chosen[word]


def hide(
    ids: Ids,
    chosen: Bool[np.ndarray, " tokens"],
    mask: int,
    others: range,
    rng: np.random.Generator,
) -> Ids:
    """The row with the chosen tokens masked, replaced by one of `others`, or kept."""
    fate = rng.random(len(ids))
    other = rng.integers(others.start, others.stop, len(ids))
    shown = np.where(fate < REPLACED, other, np.where(fate < REPLACED + KEPT, ids, mask))
    return np.where(chosen, shown, ids)
