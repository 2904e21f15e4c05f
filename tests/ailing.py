"""Data for the doctor: healthy rows, to plant faults in."""

import csv
import random
import re

from glassformer.runs.doctor import doctor

GOOD = ("great", "lovely", "superb", "warm", "clever", "bright", "moving")
BAD = ("dull", "awful", "weak", "poor", "slow", "clumsy", "boring")
OTHER = ("the", "film", "was", "a", "story", "with", "some", "people", "dog", "town", "who", "said")


def reviews(count=60, seed=1):
    """Texts and labels, all different; the label follows from two of the words."""
    rng = random.Random(seed)
    for number in range(count):
        label, words = (("good", GOOD), ("bad", BAD))[number % 2]
        text = [*rng.choices(OTHER, k=11), *rng.choices(words, k=2), str(seed), str(number)]
        rng.shuffle(text)
        yield {"text": " ".join(text), "label": label}


def table(path, rows, *, encoding="utf-8", delimiter=","):
    """Rows as a table; the path of it."""
    rows = list(rows)
    with path.open("w", newline="", encoding=encoding) as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def examined(path, **asked):
    return doctor(path, quiet=True, **asked)


def row_number(where):
    """The number in the location of a row, "x.csv row 5 (line 6)"."""
    return int(re.search(r" row (\d+)", where)[1])


def found_in(path, kind, **asked):
    """The one finding of this kind, with its rows as numbers."""
    (finding,) = (f for f in examined(path, **asked).findings if f.kind == kind)
    return finding, [row_number(row) for row in finding.rows]
