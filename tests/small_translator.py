"""A tiny translator whose true alignment is known: each word by its own, in the opposite order."""

import random
from pathlib import Path

from quick import quickly, unchecked

from glassformer.runs import api

WORDS = {
    "red": "rot",
    "old": "alt",
    "new": "neu",
    "wet": "nass",
    "dry": "trocken",
    "cat": "Katze",
    "早": "früh",
}
SETTINGS = (
    *("model.encoder.dim=32", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("model.decoder.dim=32", "model.decoder.depth=1", "model.decoder.attention.heads=2"),
    *("model.encoder.dropout=0", "model.decoder.dropout=0", "task.joint=false"),
    *("data.tokenizer.kind=words", "task.target.kind=words", "data.batch_tokens=512"),
    *("train.validate_every=1000", "train.optimiser.lr=1e-2", "train.average=1"),
)
KEPT: dict[str, Path] = {}


def sentences(count, seed=1):
    """Sources, all different from word to word."""
    rng = random.Random(seed)
    return [" ".join(rng.sample(list(WORDS), rng.randint(3, 4))) for _ in range(count)]


def translation(source):
    return " ".join(WORDS[word] for word in reversed(source.split()))


def write_pairs(path, count=700):
    lines = (f"{source}\t{translation(source)}\n" for source in sentences(count))
    path.write_text("source\ttarget\n" + "".join(lines), encoding="utf-8")
    return path


def translator(factory):
    """The folder of a run that has learned it, made once for all files of tests."""
    if "run" not in KEPT:
        folder = factory.mktemp("translator")
        pairs = write_pairs(folder / "pairs.tsv")
        with quickly(), unchecked():
            api.train("translate", pairs, run=folder / "run", steps=280, quiet=True, set=SETTINGS)
        KEPT["run"] = folder / "run"
    return KEPT["run"]
