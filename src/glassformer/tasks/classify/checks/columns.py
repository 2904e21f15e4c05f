"""Other columns that give the label away.

Training reads none of them, so they do no harm by themselves. They are worth a note: one may be the
better label, or may become part of the text one day. A column is tried in three ways: by its values
("5 stars"), by what comes before the first digit of a value ("pos" of "pos_17"), and, if all values
are numbers, by its order (ids assigned label by label). Each row is predicted from the others, so a
column with a different value in every row predicts nothing.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from glassformer.data.doctor.check import Finding
from glassformer.tasks.classify.checks.words import Sampled

SURE = 0.98  # of the rows are predicted correctly
USUAL = 0.9  # of the rows have one label, which makes guessing easy
ENOUGH = 20  # rows
DISTINCT = 0.9  # of the numbers differ: they put the rows in order


def leaking_columns(rows: Sequence[Sampled]) -> Iterator[Finding]:
    """One finding per column."""
    labels = ["\n".join(sorted(row.labels)) for row in rows]
    if len(rows) < ENOUGH or max(Counter(labels).values()) > USUAL * len(rows):
        return
    for column in dict.fromkeys(name for row in rows for name in row.others):
        values = [row.others.get(column, "") for row in rows]
        for way, share in ways_to_guess(values, labels):
            if share >= SURE:
                what = f"{way} column {column[:40]!r} predicts the label of {share:.1%} of rows"
                advice = (
                    "training does not read it; keep it out of the text, or choose it as "
                    "the label with --columns label=..."
                )
                numbers, total = [row.number for row in rows], round(share * len(rows))
                yield Finding("leaking column", "note", what, advice, numbers, total=total)
                break


def ways_to_guess(values: Sequence[str], labels: Sequence[str]) -> Iterator[tuple[str, float]]:
    """How often each way predicts the label."""
    yield "the", guessed_by_value(values, labels)
    starts = [re.split(r"\d", value, maxsplit=1)[0].strip() for value in values]
    if any(starts):
        yield "the beginning of", guessed_by_value(starts, labels)
    numbers = [_number(value) for value in values]
    if not any(map(math.isnan, numbers)) and len({*numbers}) >= DISTINCT * len(numbers):
        yield "the order of", guessed_by_order(numbers, labels)


def guessed_by_value(values: Sequence[str], labels: Sequence[str]) -> float:
    """The share of rows with the label of most other rows that have the same value.

    >>> guessed_by_value(["a", "a", "a", "b"], ["x", "x", "y", "z"])
    0.0
    >>> guessed_by_value(["a", "a", "b", "b"], ["x", "x", "z", "z"])
    1.0
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for value, label in zip(values, labels, strict=True):
        counts[value][label] += 1
    right = 0
    for found in counts.values():
        (_, most), *others = found.most_common(2)
        right += most if most - 1 > sum(count for _, count in others) else 0
    return right / len(values)


def guessed_by_order(numbers: Sequence[float], labels: Sequence[str]) -> float:
    """The share of rows with the same label as the row with the next number.

    >>> guessed_by_order([3.0, 1.0, 5.0, 2.0, 4.0], ["b", "a", "b", "a", "b"])
    0.75
    """
    order = sorted(range(len(numbers)), key=lambda place: numbers[place])
    same = [labels[a] == labels[b] for a, b in pairwise(order)]
    return sum(same) / len(same)


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return math.nan
