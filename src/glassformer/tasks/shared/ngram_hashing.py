"""N-grams of a text and their buckets, as scikit-learn's HashingVectorizer has them, without it.

A baseline is fitted with scikit-learn and used without: the two must agree to the last bucket.
Buckets are those of MurmurHash3 in its 32-bit form. Appleby, 2011.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Int, UInt32

from glassformer.tasks.shared.ngrams import BUCKETS, WORDS, Analyser

FIRST, SECOND = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)  # MurmurHash3's factors
SPACES = re.compile(r"\s\s+")
IDEOGRAPHS = "\u2e80"  # the first character of the scripts in which one character is a word

Hashes = UInt32[np.ndarray, " N"]


def ngrams_of(text: str, analyser: Analyser) -> Iterator[str]:
    """All n-grams of a text, one after the other, repeated ones included.

    >>> list(ngrams_of("Ah, no!", Analyser("word", 2)))
    ['ah', 'no', '!', 'ah no', 'no !']
    >>> list(ngrams_of("ab", Analyser("character", 2)))  # with its beginning and end
    [' ', 'a', 'b', ' ', ' a', 'ab', 'b ']
    """
    if analyser.unit == "word":
        parts, between = re.findall(WORDS, text.lower()), " "
    else:
        parts, between = [*SPACES.sub(" ", f" {text} ")], ""
    for longest in range(1, analyser.longest + 1):
        for start in range(len(parts) - longest + 1):
            yield between.join(parts[start : start + longest])


def telling_parts(text: str, analyser: Analyser) -> Iterable[str]:
    """The words of a text, or its pairs of characters; single ones where they say something.

    >>> characters = Analyser("character", 3)
    >>> telling_parts("so it", characters), telling_parts("好 a", characters)
    (['so', 'it'], ['好'])
    """
    if analyser.unit == "word":
        return (word.group() for word in re.finditer(WORDS, text.lower()))
    parts = [part for part in ngrams_of(text, Analyser("character", 2)) if not set(part) & {" "}]
    telling = [part for part in parts if len(part) == 2 or part >= IDEOGRAPHS]
    return telling or parts


def buckets_of(ngrams: Sequence[str]) -> Int[np.ndarray, " N"]:
    """The bucket of each n-gram."""
    signed = murmur3([ngram.encode("utf-8", "surrogatepass") for ngram in ngrams]).view(np.int32)
    return np.abs(signed.astype(np.int64)) % BUCKETS


@lru_cache(maxsize=1 << 12)
def bucket_of(ngram: str) -> int:
    """The bucket of one n-gram; common ones are remembered."""
    return int(buckets_of([ngram])[0])


def murmur3(keys: Sequence[bytes]) -> Hashes:
    """The 32-bit MurmurHash3 of each key, with seed 0; keys of one length are hashed at once."""
    hashes = np.zeros(len(keys), dtype=np.uint32)
    lengths = np.fromiter(map(len, keys), dtype=np.int64, count=len(keys))
    for length in np.unique(lengths).tolist():
        rows = np.flatnonzero(lengths == length)
        whole = -(-length // 4)  # blocks of four bytes, the last one filled up with zeros
        table = np.zeros((len(rows), 4 * whole), dtype=np.uint8)
        joined = b"".join(keys[row] for row in rows.tolist())
        table[:, :length] = np.frombuffer(joined, dtype=np.uint8).reshape(len(rows), length)
        hashes[rows] = _hashed(table.view("<u4").astype(np.uint32), length)
    return hashes


def _hashed(blocks: UInt32[np.ndarray, "N blocks"], length: int) -> Hashes:
    """The hashes of keys of one length, in blocks of four bytes."""
    found = np.zeros(len(blocks), dtype=np.uint32)
    for number in range(blocks.shape[1]):
        found ^= rotated(blocks[:, number] * FIRST, 15) * SECOND
        if number < length // 4:  # not after the bytes that are left over
            found = rotated(found, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return finished(found ^ np.uint32(length))


def finished(found: Hashes) -> Hashes:
    """The last step, in which every bit of a hash comes to depend on every other."""
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        found = (found ^ found >> np.uint32(shift)) * np.uint32(factor)
    return found ^ found >> np.uint32(16)


def rotated(values: Hashes, by: int) -> Hashes:
    """The bits of each value moved to the left; those that fall off come in on the right."""
    return values << np.uint32(by) | values >> np.uint32(32 - by)
