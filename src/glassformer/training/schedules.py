"""Learning rate schedules, relative to the peak learning rate.

Steps count from 1. After a linear warm-up to the peak:

    cosine         half a cosine wave down to the floor     Loshchilov and Hutter, 2016
    linear         linear decay to the floor
    inverse-root   inverse square root of the step          Vaswani et al., 2017
    constant       no decay

To add one, write a function of the fraction of the decay that is done, and list it in SHAPES.
"""

import math
from collections.abc import Callable

from glassformer.config import OptimiserConfig

Shape = Callable[[float], float]

SHAPES: dict[str, Shape] = {
    "cosine": lambda done: 0.5 * (1 + math.cos(math.pi * done)),
    "linear": lambda done: 1 - done,
    "constant": lambda done: 1.0,
}


def lr_at(step: int, steps: int, config: OptimiserConfig) -> float:
    """The learning rate of a step."""
    warmup = round(config.warmup * steps)
    if step <= warmup:
        return config.lr * step / warmup
    if config.schedule == "inverse-root":
        return config.lr * math.sqrt(max(warmup, 1) / step)
    done = (step - warmup) / max(1, steps - warmup + 1)
    left = SHAPES[config.schedule](done)
    return config.lr * (config.floor + (1 - config.floor) * left)
