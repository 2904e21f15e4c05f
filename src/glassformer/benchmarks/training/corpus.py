"""Random texts with lengths like those of real ones: log-normal, many short and a few long.

Tokens are words of three letters, so that a tokenizer of words gives exactly these lengths.
"""

import csv
import math
from collections.abc import Iterable, Sequence
from itertools import islice, product
from pathlib import Path
from string import ascii_lowercase

import numpy as np
from jaxtyping import Float, Int

from glassformer.benchmarks.training.sizes import Lengths, Sizes

SIDES_APART = 0.2  # deviation of the logarithm of how much longer a target is than its source
SHORTEST = 3  # tokens; shorter rows of a random language would often be the same


def write_pairs(path: Path, sizes: Sizes) -> None:
    """Pairs of texts of similar lengths, tab-separated."""
    rng = np.random.default_rng(0)
    sources = draw_lengths(sizes.pairs, sizes.sentence, rng)
    apart = rng.normal(0.0, SIDES_APART, sizes.pairs)
    targets = cut(sources * np.exp(apart), sizes.sentence.longest)
    sides = (texts(lengths, sizes.words, rng) for lengths in (sources, targets))
    write_table(path, ("source", "target"), zip(*sides, strict=True), "\t")


def write_reviews(path: Path, sizes: Sizes) -> None:
    """Texts, each with one of two labels at random."""
    rng = np.random.default_rng(1)
    lengths = draw_lengths(sizes.texts, sizes.review, rng)
    labels = np.where(rng.random(sizes.texts) < 0.5, "good", "bad").tolist()
    rows = zip(texts(lengths, sizes.words, rng), labels, strict=True)
    write_table(path, ("text", "label"), rows, ",")


def draw_lengths(rows: int, lengths: Lengths, rng: np.random.Generator) -> Int[np.ndarray, " rows"]:
    """Lengths by a log-normal distribution of this mean and deviation."""
    variance = math.log1p((lengths.deviation / lengths.mean) ** 2)
    middle = math.log(lengths.mean) - variance / 2
    return cut(np.exp(rng.normal(middle, math.sqrt(variance), rows)), lengths.longest)


def cut(lengths: Float[np.ndarray, " rows"], longest: int) -> Int[np.ndarray, " rows"]:
    """Whole numbers of tokens, neither too few nor too many."""
    return np.clip(np.rint(lengths), SHORTEST, longest).astype(np.int64)


def texts(lengths: Int[np.ndarray, " rows"], words: int, rng: np.random.Generator) -> Iterable[str]:
    """Texts of random words."""
    known = ["".join(letters) for letters in islice(product(ascii_lowercase, repeat=3), words)]
    for length in lengths.tolist():
        yield " ".join(known[word] for word in rng.integers(words, size=length))


def write_table(
    path: Path, header: Sequence[str], rows: Iterable[Sequence[str]], delimiter: str
) -> None:
    """A table with a header."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(header)
        writer.writerows(rows)
