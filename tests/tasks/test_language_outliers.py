"""Outliers on a side: words that nobody else says, in letters that nobody else writes."""

import random
from zlib import crc32

import numpy as np

from glassformer.tasks.shared.language_outliers import CELLS, LanguageOutliers

FEW_LETTERS, OTHER_LETTERS, MANY_LETTERS = "abcdef", "uvwxyz", "abcdefghijklmnopq"


def line_of(chance, letters, words=7):
    return " ".join("".join(chance.choices(letters, k=6)) for _ in range(words))


def side_of(chance, letters):
    """Lines that share some of their words."""
    common = line_of(chance, letters, words=40).split()
    return [
        " ".join([*chance.sample(common, 4), line_of(chance, letters, words=4)]) for _ in range(150)
    ]


def found_in(lines):
    outliers = LanguageOutliers()
    for number, line in enumerate(lines):
        pieces = [crc32(line[at : at + 3].encode()) % CELLS for at in range(len(line) - 2)]
        outliers.see(number, line, np.array(pieces))
    return list(outliers.found())


def test_rare_words_in_usual_letters_are_no_outlier():
    chance = random.Random(0)
    lines = side_of(chance, FEW_LETTERS)
    assert found_in([*lines, line_of(chance, FEW_LETTERS), line_of(chance, OTHER_LETTERS)]) == [151]


def test_what_an_outlier_writes_does_not_make_it_usual():
    chance = random.Random(0)
    assert found_in([*side_of(chance, MANY_LETTERS), line_of(chance, MANY_LETTERS)]) == [150]
