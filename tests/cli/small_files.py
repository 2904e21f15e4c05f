"""Small data, tiny models and a trained run that the tests of the commands share."""

import csv
import json
import random
from pathlib import Path

from quick import quickly

from glassformer.cli import main

GOOD = ("great", "lovely", "superb", "warm", "clever", "bright", "moving")
BAD = ("dull", "awful", "weak", "poor", "slow", "clumsy", "boring")
OTHER = ("the", "film", "was", "a", "story", "with", "some", "people", "dog", "town", "who", "said")

TINY = (
    *("--set", "model.encoder.dim=16", "--set", "model.encoder.depth=1"),
    *("--set", "model.encoder.attention.heads=2", "--set", "model.encoder.dropout=0.0"),
    *("--set", "train.validate_every=100", "--set", "train.optimiser.lr=1e-2"),
)
SHORT = (*TINY, "--steps", "3", "--no-pretrain", "--quiet", "--json")


def reviews(count=113, seed=1):
    """Rows of text and label, all different; the label follows from two of the words."""
    rng = random.Random(seed)
    for number in range(count):
        label, words = (("good", GOOD), ("bad", BAD))[number % 2]
        text = [*rng.choices(OTHER, k=17), *rng.choices(words, k=2), str(number)]
        yield {"text": " ".join(text), "label": label, "film": f"film {number // 5}"}


def write_csv(path, rows, delimiter=","):
    """A table of these rows."""
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def train(data, run, *words):
    """Train a tiny classifier for a few steps; what the shell would see."""
    return main(["train", "classify", str(data), "--run", str(run), *SHORT, *map(str, words)])


def report_of(run):
    return json.loads((Path(run) / "report.json").read_text(encoding="utf-8"))


def everything_in(folder):
    """All files with their content, and all folders."""
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.is_symlink()
    }


KEPT: dict[str, Path] = {}


def shared(name, factory, make):
    """A folder that is made once for all files of tests."""
    if name not in KEPT:
        folder = factory.mktemp(name)
        with quickly():
            make(folder)
        KEPT[name] = folder
    return KEPT[name]


def trained(factory):
    """A folder with reviews.csv, test.csv and a run that has learned them."""

    def make(folder):
        write_csv(folder / "reviews.csv", reviews())
        write_csv(folder / "test.csv", reviews(41, seed=2))
        assert train(folder / "reviews.csv", folder / "run", "--steps", 40) == 0

    return shared("trained", factory, make)
