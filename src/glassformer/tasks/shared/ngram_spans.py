"""The n-grams of many texts at once, as spans of bytes, and the buckets they are hashed to.

All texts lie in one array, and an n-gram is where it starts and how long it is: nothing is done
n-gram by n-gram in Python. The n-grams are those of `ngram_hashing.ngrams_of`, bucket by bucket.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt8, UInt32

from glassformer.tasks.shared.ngram_hashing import FIRST, SECOND, SPACES, finished, rotated
from glassformer.tasks.shared.ngrams import BUCKETS, WORDS, Analyser

CHARACTERS = 1 << 18  # of the texts that are read at once: about 100 MB
SPACE, NEWLINE = 32, 10
PLACE = (
    np.int32
)  # half the memory of int64, and twice the speed; a call has fewer than 2 GB of text
TAIL_MASKS = np.array([0, 0xFF, 0xFFFF, 0xFFFFFF], dtype=np.uint32)  # by bytes left over

WORD = re.compile(WORDS)


@dataclass(frozen=True, eq=False, slots=True)
class Spans:
    """N-grams of some texts.

    Attributes:
        buffer: The bytes of all texts.
        text_of: The text that each n-gram is of.
    """

    buffer: UInt8[np.ndarray, " bytes"]
    starts: Int[np.ndarray, " N"]
    lengths: Int[np.ndarray, " N"]
    text_of: Int[np.ndarray, " N"]

    def written(self, number: int) -> str:
        """One of the n-grams as text."""
        start = self.starts[number]
        found = self.buffer[start : start + self.lengths[number]].tobytes()
        return found.decode("utf-8", "surrogatepass")


def spans_of(texts: Sequence[str], analyser: Analyser) -> Spans:
    """All n-grams of some texts, repeated ones included.

    >>> found = spans_of(["Ah, no!", "Ah"], Analyser("word", 2))
    >>> [found.written(number) for number in range(len(found.starts))]
    ['ah', 'no', '!', 'ah', 'ah no', 'no !']
    """
    by_unit = _words if analyser.unit == "word" else _characters
    buffer, starts, ends, text_of = by_unit(texts)
    found = []
    for size in range(1, analyser.longest + 1):
        last, firsts = size - 1, max(0, len(starts) - size + 1)
        whole = text_of[:firsts] == text_of[last:]  # not across the end of a text
        first = starts[:firsts][whole]
        found.append((first, ends[last:][whole] - first, text_of[:firsts][whole]))
    return Spans(buffer, *(np.concatenate(arrays) for arrays in zip(*found, strict=True)))


def telling_spans(texts: Sequence[str], analyser: Analyser) -> Spans:
    """The words of some texts, or their pairs of characters without spaces.

    >>> found = telling_spans(["so it", "a"], Analyser("character", 5))
    >>> [found.written(number) for number in range(len(found.starts))]
    ['so', 'it']
    """
    if analyser.unit == "word":
        return spans_of(texts, Analyser("word", 1))
    buffer, starts, ends, text_of = _characters(texts)
    solid = buffer[starts] != SPACE
    pairs = solid[:-1] & solid[1:] & (text_of[:-1] == text_of[1:])
    first = starts[:-1][pairs]
    return Spans(buffer, first, ends[1:][pairs] - first, text_of[:-1][pairs])


Units = tuple[
    UInt8[np.ndarray, " bytes"],
    Int[np.ndarray, " units"],
    Int[np.ndarray, " units"],
    Int[np.ndarray, " units"],
]  # the bytes of all texts; where each unit starts and ends, and which text it is of


def _words(texts: Sequence[str]) -> Units:
    lines = [" ".join(WORD.findall(text.lower())) for text in texts]
    buffer = np.frombuffer("\n".join([*lines, ""]).encode(), dtype=np.uint8)
    ends = np.flatnonzero((buffer == SPACE) | (buffer == NEWLINE))
    starts = np.append(0, ends + 1)[:-1]
    text_of = np.append(0, np.cumsum(buffer[ends] == NEWLINE))[:-1]
    real = ends > starts  # a text without words is an empty line
    places = np.stack([starts, ends, text_of])[:, real].astype(PLACE)
    return buffer, places[0], places[1], places[2]


def _characters(texts: Sequence[str]) -> Units:
    framed = [SPACES.sub(" ", f" {text} ") for text in texts]
    buffer = np.frombuffer("".join(framed).encode("utf-8", "surrogatepass"), dtype=np.uint8)
    begins = (buffer & 0xC0) != 0x80  # all but the bytes that continue a character
    edges = np.append(np.flatnonzero(begins), len(buffer)).astype(PLACE)
    text_of = np.repeat(np.arange(len(texts), dtype=PLACE), [len(text) for text in framed])
    return buffer, edges[:-1], edges[1:], text_of


def buckets_of_spans(spans: Spans) -> Int[np.ndarray, " N"]:
    """The bucket of each n-gram, by the 32-bit MurmurHash3 of its bytes."""
    padded = np.concatenate([spans.buffer, np.zeros(4, dtype=np.uint8)])
    padded = padded.astype(np.uint32)
    words = padded[:-3] | padded[1:-2] << 8 | padded[2:-1] << 16 | padded[3:] << 24
    hashes = np.zeros(len(spans.starts), dtype=np.uint32)
    blocks = spans.lengths >> 2
    for number in range(int(blocks.max(initial=0))):
        longer = np.flatnonzero(blocks > number)
        mixed = hashes[longer] ^ _mixed(words[spans.starts[longer] + 4 * number])
        hashes[longer] = rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    left = TAIL_MASKS[spans.lengths & 3]
    hashes ^= _mixed(words[spans.starts + 4 * blocks] & left)
    signed = finished(hashes ^ spans.lengths.astype(np.uint32)).view(np.int32)
    return np.abs(signed.astype(np.int64)) % BUCKETS


def _mixed(blocks: UInt32[np.ndarray, " N"]) -> UInt32[np.ndarray, " N"]:
    return rotated(blocks * FIRST, 15) * SECOND


def chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Consecutive texts of so many characters that they are read quickly, in little memory."""
    start, size = 0, 0
    for end, text in enumerate(texts):
        if size and size + len(text) > CHARACTERS:
            yield texts[start:end]
            start, size = end, 0
        size += 1 + len(text)
    if start < len(texts):
        yield texts[start:]


def most_of_each(
    text_of: Int[np.ndarray, " n"], strength: Float[np.ndarray, " n"], count: int
) -> Int[np.ndarray, " chosen"]:
    """The places of the largest values of each text, at most `count` of one.

    >>> most_of_each(np.array([0, 0, 0, 2]), np.array([5.0, 9.0, 7.0, 1.0]), 2)
    array([1, 2, 3])
    """
    order = np.lexsort((-strength, text_of))
    sorted_texts = text_of[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_texts, sorted_texts)
    return order[rank < count]
