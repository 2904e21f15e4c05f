"""Small translators over pairs that a test writes down, and a toy that can be learned."""

import random

from small_jobs import job_of

from glassformer.config.values import laid_over

STACK = {"dim": 32, "depth": 1, "dropout": 0.0, "attention": {"heads": 2}}
BOTH = {"model": {"encoder": STACK, "decoder": STACK}}


def pair_job(folder, pairs, origin=None, **settings):
    """A translator over (source, target) pairs, or rows with more in them."""
    rows = [
        row if isinstance(row, dict) else {"source": row[0], "target": row[1]} for row in pairs
    ]
    return job_of("translate", folder, rows, origin, **laid_over(BOTH, settings))


def backwards(count, seed=1, longest=4):
    """Numbers and the same read from the right, all different."""
    dice = random.Random(seed)
    seen = {}
    while len(seen) < count:
        digits = "".join(dice.choices("0123456789", k=dice.randint(2, longest)))
        seen[digits] = digits[::-1]
    return list(seen.items())
