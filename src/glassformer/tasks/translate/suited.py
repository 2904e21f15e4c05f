"""Batches that suit the pairs of a run, on an accelerator.

Large batches keep it busy, but each is one update, and a training of a few hundred updates ends too
early (docs/dev/log.md, "Larger batches need more rows"). So they are for many pairs.
"""

from itertools import islice

from glassformer.config.values import Values
from glassformer.data.samples import Samples

LOOKED_AT = 1_000  # texts that tell how long they are
MANY = 20_000_000  # characters to write, about 1,500 large batches in the default epochs
LARGE = 65_536  # tokens


def suited_to(samples: Samples, accelerated: bool, _: Values) -> Values:
    """Settings for this much text."""
    seen = list(islice(samples.values("target", "train"), LOOKED_AT)) if accelerated else []
    characters = len(samples.rows("train")) * sum(map(len, seen)) / max(1, len(seen))
    return {"data": {"batch_tokens": LARGE}} if characters > MANY else {}
