"""Small translators over pairs that a test writes down, and a toy that can be learned."""

import itertools
import random
from contextlib import contextmanager

import jaxtyping
import torch
from small_jobs import job_of, taught

from glassformer.config.values import merge_values

STACK = {"dim": 32, "depth": 1, "dropout": 0.0, "attention": {"heads": 2}}
BOTH = {"model": {"encoder": STACK, "decoder": STACK}}


def pair_job(folder, pairs, origin=None, **settings):
    """A translator over (source, target) pairs, or rows with more in them."""
    rows = [row if isinstance(row, dict) else {"source": row[0], "target": row[1]} for row in pairs]
    return job_of("translate", folder, rows, origin, **merge_values(BOTH, settings))


def backwards(held_out=31):
    """All numbers of three digits below 6, to be read from the right; some only for testing."""
    numbers = ["".join(digits) for digits in itertools.product("012345", repeat=3)]
    random.Random(1).shuffle(numbers)
    return [
        {"source": text, "target": text[::-1], "split": "test" if n < held_out else "train"}
        for n, text in enumerate(numbers)
    ]


@contextmanager
def shapes_unchecked():
    """Many steps with checked shapes take long; one step of each kind is checked elsewhere."""
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    torch.set_num_threads(1)
    yield
    jaxtyping.config.update("jaxtyping_disable", before)


def taught_quickly(job, steps):
    with shapes_unchecked():
        return taught(job, steps)
