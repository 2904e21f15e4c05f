"""Schedules: how the learning rate rises and falls, as a share of its highest value.

Steps count from 1. After a warm-up, in which the share rises evenly to 1:

    cosine         half a wave down to the floor            Loshchilov and Hutter, 2016
    linear         a straight line down to the floor
    inverse-root   with the root of the step                Vaswani et al., 2017
    constant       stays

To add one, write a function of the share of the way gone, and list it.
"""

import math
from collections.abc import Callable

from glassformer.config import OptimiserConfig

Shape = Callable[[float], float]

SHAPES: dict[str, Shape] = {
    "cosine": lambda gone: 0.5 * (1 + math.cos(math.pi * gone)),
    "linear": lambda gone: 1 - gone,
    "constant": lambda gone: 1.0,
}


def lr_at(step: int, steps: int, config: OptimiserConfig) -> float:
    """The learning rate of a step."""
    warm = round(config.warmup * steps)
    if step <= warm:
        return config.lr * step / warm
    if config.schedule == "inverse-root":
        return config.lr * math.sqrt(max(warm, 1) / step)
    gone = (step - warm) / max(1, steps - warm + 1)
    left = SHAPES[config.schedule](gone)
    return config.lr * (config.floor + (1 - config.floor) * left)
