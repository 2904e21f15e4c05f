"""Small runs of translators, and pairs for them."""

import itertools
import random

from glassformer.runs import api

STACKS = tuple(
    f"model.{stack}.{setting}"
    for stack in ("encoder", "decoder")
    for setting in ("dim=16", "depth=1", "attention.heads=2", "dropout=0.1")
)
WRITING = ("task.decode.method=greedy", "task.decode.max_length=6")  # as much as time allows
SETTINGS = (*STACKS, *WRITING, "train.validate_every=100", "machine.threads=1")


def write_pairs(path, count=97, seed=1, *, turned=False):
    """A table of letters and the same read backwards, all different; `turned`, the other way."""
    words = ["".join(letters) for letters in itertools.product("abcdef", repeat=4)]
    random.Random(seed).shuffle(words)
    header = "target\tsource" if turned else "source\ttarget"
    lines = [header, *(f"{word}\t{word[::-1]}" for word in words[:count])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def translate(data, run, *settings, **asked):
    """A tiny translator, trained for a few steps."""
    usual = {"steps": 3, "quiet": True, "set": (*SETTINGS, *settings)}
    return api.train("translate", data, run=run, **usual | asked)
