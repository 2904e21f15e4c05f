"""Small runs in Python: data that can be learned, tiny models, and ways to stop in between."""

import csv
import random

from glassformer.runs import api
from glassformer.training.weights import read_tensors

WORDS = {
    "good": ("great", "lovely", "superb", "warm", "clever"),
    "bad": ("dull", "awful", "weak", "poor", "slow"),
}
OTHER = ("the", "film", "was", "a", "story", "with", "some", "people", "dog", "town", "who", "said")
SETTINGS = (
    *("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("train.validate_every=100", "train.optimiser.lr=1e-2"),
)


def write_reviews(path, count=97, length=17, seed=1):
    """A table of texts and labels, all different."""
    rng = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for number in range(count):
            label = ("good", "bad")[number % 2]
            text = [*rng.choices(OTHER, k=length), rng.choice(WORDS[label]), str(number)]
            writer.writerow([" ".join(text), label])
    return path


def learn(data, run, *settings, **asked):
    """A tiny classifier, trained for a few steps."""
    usual = {"steps": 3, "pretrain": False, "quiet": True, "set": (*SETTINGS, *settings)}
    return api.train("classify", data, run=run, **usual | asked)


def weights(run):
    return read_tensors(run / "model.safetensors")


def same(first, second):
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)
