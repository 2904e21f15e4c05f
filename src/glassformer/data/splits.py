"""Which split a row belongs to: a function of its content, its group or its label.

Nothing is random. A key is hashed to a point between 0 and 1, and the shares divide that interval,
so the same text falls into the same split in any file, in any order. Stratified, the rows of every
label are divided by themselves, by the order of their hashes, so that each split has its share of
every label. If rows have times, the last ones of each stratum are held out.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate

import numpy as np
from jaxtyping import Float, Int, UInt64

from glassformer.errors import GlassformerError, unknown

SPLIT_NAMES: dict[str, str] = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "development": "valid",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "evaluation": "test",
}


def split_of(key: str, shares: Mapping[str, float], seed: int) -> str:
    """The split of a key; what the shares leave over is `train`.

    Args:
        key: The content of a sample, or its group.
        shares: Split to share, in order along the interval.

    >>> split_of("film 7", {"valid": 0.1, "test": 0.1}, seed=0)
    'train'
    """
    return split_at(seeded_hash(key, seed), ends_of(shares))


def seeded_hash(key: str, seed: int) -> int:
    """The hash that decides the split of a key."""
    return hashed(f"{seed}\n{key}")


def ends_of(shares: Mapping[str, float]) -> list[tuple[str, float]]:
    """Split to the end of its share in the interval."""
    sizes = shares.values()
    if min(sizes, default=0.0) < 0 or sum(sizes) > 1 + 1e-9:
        raise ValueError(f"shares must be 0 or more and add up to at most 1; got {dict(shares)}")
    return list(zip(shares, accumulate(sizes), strict=True))


def split_at(hash_: int, ends: Iterable[tuple[str, float]]) -> str:
    """The split of a key with this hash."""
    point = hash_ / 2**64
    for split, end in ends:
        if point < end:
            return split
    return "train"


def stratified(
    contents: UInt64[np.ndarray, " rows"],
    strata: UInt64[np.ndarray, " rows"],
    shares: Sequence[float],
) -> Int[np.ndarray, " rows"]:
    """The number of the share that each row falls into; that of the rest is `len(shares)`.

    Rows of equal content fall together. What rounding leaves over in one stratum goes to the next.

    Args:
        contents: A hash of each row's content, which decides.
        strata: A hash of each row's label; the lowest counts for rows of equal content.

    >>> stratified(np.arange(6, dtype=np.uint64), np.array([0, 0, 0, 0, 1, 1], np.uint64), [0.5])
    array([0, 0, 1, 1, 0, 1])
    """
    distinct, content_of = np.unique(contents, return_inverse=True)
    stratum = np.full(len(distinct), np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(stratum, content_of, strata)
    order = np.lexsort((distinct, stratum))
    _, begins, sizes = np.unique(stratum[order], return_index=True, return_counts=True)
    rank = np.arange(len(order)) - np.repeat(begins, sizes)
    number, before = np.zeros(len(order), dtype=np.int64), np.zeros(len(sizes))
    for end in accumulate(shares):
        until = np.floor(end * (begins + sizes) + 0.5) - np.floor(end * begins + 0.5)
        before = np.maximum(before, until)
        number += rank >= np.repeat(before, sizes)
    found = np.empty_like(number)
    found[order] = number
    return found[content_of]


def last_first(
    contents: UInt64[np.ndarray, " rows"], times: Float[np.ndarray, " rows"]
) -> UInt64[np.ndarray, " rows"]:
    """Numbers to be used as contents of `stratified`, the lowest for what happened last.

    >>> last_first(np.array([7, 5, 7], np.uint64), np.array([1.0, 2.0, 3.0]))
    array([0, 1, 0], dtype=uint64)
    """
    distinct, content_of = np.unique(contents, return_inverse=True)
    last = np.full(len(distinct), -np.inf)
    np.maximum.at(last, content_of, times)
    number = np.empty(len(distinct), dtype=np.uint64)
    number[np.lexsort((distinct, -last))] = np.arange(len(distinct), dtype=np.uint64)
    return number[content_of]


def components(*keys: UInt64[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
    """The number of the component of each row: rows with any key in common are in one.

    >>> components(np.array([1, 1, 2, 3], np.uint64), np.array([7, 8, 8, 9], np.uint64))
    array([0, 0, 0, 1])
    """
    lowest = np.arange(len(keys[0]))  # the first row of the component, as far as it is known
    numbers = [np.unique(key, return_inverse=True)[1] for key in keys]
    before = None
    while before is None or (before != lowest).any():
        before = lowest
        for number in numbers:
            first = np.full(len(lowest), len(lowest))
            np.minimum.at(first, number, lowest)
            lowest = first[number]
        lowest = lowest[lowest]  # so that a chain of rows takes few rounds
    return np.unique(lowest, return_inverse=True)[1]


def mixed(hashes: UInt64[np.ndarray, " rows"]) -> UInt64[np.ndarray, " rows"]:
    """Hashes of hashes (splitmix64), so that the lowest of several decides no more than another."""
    z = hashes + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hashed(text: str) -> int:
    """A 64-bit hash of a text."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest)


def content_key(text: str) -> str:
    """The text without differences of case, white space and Unicode form.

    >>> content_key("  Ａ  fine\\tFILM ")
    'a fine film'
    """
    if text.isascii():
        return " ".join(text.lower().split())
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def named_split(value: str | list[str], where: str = "the split column") -> str:
    """The split named in a `split` column; `where` is the location of the row."""
    name = str(value).strip()
    split = SPLIT_NAMES.get(name.casefold())
    if split is None:
        raise GlassformerError(f"{where}: " + unknown("split", name, SPLIT_NAMES))
    return split
