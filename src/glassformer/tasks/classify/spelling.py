"""How words are written in the characters of a tokenizer."""

import numpy as np

from glassformer.data.text import words
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.models.frontends.words import ALONE, BETWEEN, Spelling

LETTER, DIGIT, SIGN = range(2, 5)
KINDS = {
    words.BLANK: BETWEEN,
    words.SPACE: BETWEEN,
    words.LETTER: LETTER,
    words.INSIDE: LETTER,
    words.DIGIT: DIGIT,
    words.SIGN: SIGN,
    words.ALONE: ALONE,
}


def spelling_of(tokenizer: Tokenizer) -> Spelling:
    """Words are runs of letters, of digits or of signs; a masked character counts as a letter.

    >>> tokenizer = Tokenizer.train("characters", ["So it is, 1:0 at last"], vocabulary=100)
    >>> [ids] = tokenizer.encode(["is, 10"])
    >>> spelling_of(tokenizer).kinds[ids].tolist()
    [2, 2, 4, 0, 3, 3]
    """
    kinds = np.array([KINDS[kind] for kind in tokenizer.first_kinds.tolist()])
    kinds[[tokenizer.start, tokenizer.end]] = BETWEEN
    kinds[tokenizer.mask] = LETTER
    return Spelling(kinds, tokenizer.mask)
