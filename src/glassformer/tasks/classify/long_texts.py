"""Texts longer than the model's input: which of their tokens it reads.

    head      the first ones
    tail      the last ones
    both      half from each end
    windows   all of them, in pieces; predictions are averaged, and training picks one at random

To add a way, write a function from tokens to pieces and list it in WAYS.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Int

Ids = Int[np.ndarray, " _"]  # of any length
Way = Callable[[Ids, int], list[Ids]]


def head(ids: Ids, longest: int) -> list[Ids]:
    """The first tokens."""
    return [ids[:longest]]


def tail(ids: Ids, longest: int) -> list[Ids]:
    """The last tokens."""
    return [ids[max(0, len(ids) - longest) :]]


def both(ids: Ids, longest: int) -> list[Ids]:
    """Half from each end."""
    if len(ids) <= longest:
        return [ids]
    first = (longest + 1) // 2
    return [np.concatenate([ids[:first], ids[len(ids) - (longest - first) :]])]


def windows(ids: Ids, longest: int) -> list[Ids]:
    """All tokens, in pieces of full length; the last piece ends with the text."""
    if len(ids) <= longest:
        return [ids]
    starts = [*range(0, len(ids) - longest, longest), len(ids) - longest]
    return [ids[start : start + longest] for start in starts]


WAYS: dict[str, Way] = {"head": head, "tail": tail, "both": both, "windows": windows}
