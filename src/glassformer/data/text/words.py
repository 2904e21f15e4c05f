"""Word boundaries for any kind of tokens, for whole-word masking.

A word is a run of letters, of digits, or of signs, with the one blank before it. In scripts without
blanks (Chinese, Japanese, Thai ...) every character is a word, and combining marks belong to the
character before them.
"""

import unicodedata
from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray

BLANK, SPACE, LETTER, DIGIT, SIGN, ALONE, INSIDE = range(7)
BEGINS = np.array([kind in (BLANK, SPACE, ALONE) for kind in range(7)])
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


@cache
def kind_of(character: str) -> int:
    """The kind of a character. A lone byte is given as a surrogate escape."""
    if "\udc80" <= character <= "\udcff":
        return _kind_of_lead(ord(character) - 0xDC00)
    category = unicodedata.category(character)
    if character == " ":
        return BLANK
    if character.isspace():
        return SPACE
    if category[0] == "M" or category == "Cf":
        return INSIDE
    if category[0] == "N":
        return DIGIT
    if category[0] == "L" and unicodedata.name(character, "").startswith(UNSPACED):
        return ALONE
    return LETTER if category[0] == "L" or character in "'’" else SIGN


def _kind_of_lead(byte: int) -> int:
    """What the characters that start with this byte in UTF-8 mostly are."""
    if byte < 0xC0 or 0xCC <= byte <= 0xCD:
        return INSIDE  # the rest of a character, or a combining mark
    if byte in (0xC2, 0xE2) or byte >= 0xEE:
        return SIGN  # Latin-1's signs, U+2000 to U+2FFF, emoji
    return ALONE if 0xE3 <= byte <= 0xE9 else LETTER


def edges(tokens: Iterable[bytes]) -> NDArray[np.int8]:
    """For each token, the kinds of its first character and its last that is not a mark: (2, V)."""
    pairs = []
    for token in tokens:
        kinds = [kind_of(character) for character in token.decode("utf-8", "surrogateescape")]
        solid = [kind for kind in kinds if kind != INSIDE] or [INSIDE]
        pairs.append((kinds[0] if kinds else ALONE, solid[-1] if kinds else ALONE))
    return np.array(pairs, dtype=np.int8).T


def number_words(
    first: NDArray[np.int8], last: NDArray[np.int8], starts: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The index of the word of each token, from the edges of the tokens and where rows start."""
    solid = (last != INSIDE) | starts
    latest = np.maximum.accumulate(np.where(solid, np.arange(len(last)), 0))
    before, now = last[latest[:-1]], first[1:]
    changes = (before != now) & (now != INSIDE) & (before != BLANK)
    begins = starts.copy()
    begins[1:] |= BEGINS[now] | changes
    return np.cumsum(begins) - 1
