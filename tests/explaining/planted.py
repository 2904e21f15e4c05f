"""A task whose reasons are known: two marked words among a hundred outvote a third."""

import csv
import random

from glassformer.runs import api

MARKED = {"good": ("great", "lovely", "superb"), "bad": ("dull", "awful", "weak")}
OTHERS = [f"{a}{b}{c}" for a in "bdklmnprst" for b in "aeiou" for c in ("n", "r", "st")]
SETTINGS = (
    *("model.encoder.dim=32", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("train.optimiser.lr=5e-3", "model.encoder.dropout=0", "data.batch_tokens=2048"),
    "train.validate_every=1000",
)


def planted_text(rng, words=100):
    """A text, its label, and where the two marked words for it stand; a third is against it."""
    text = rng.choices(OTHERS, k=words)
    label, other = rng.sample(list(MARKED), 2)
    places = rng.sample(range(words), 3)
    for number, place in enumerate(places):
        text[place] = rng.choice(MARKED[label if number < 2 else other])
    return " ".join(text), label, sorted(places[:2])


def write_planted(path, rows, seed=1):
    """A table of such texts."""
    rng = random.Random(seed)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        writer.writerows(planted_text(rng)[:2] for _ in range(rows))
    return path


def learn_planted(folder, *settings, rows=800, steps=120):
    """A tiny classifier that has learned the task."""
    data = write_planted(folder / "planted.csv", rows)
    usual = {"steps": steps, "pretrain": False, "quiet": True, "run": folder / "run"}
    return api.train("classify", data, **usual, set=(*SETTINGS, *settings))
