"""Threads: a small batch is computed by one.

Between its steps a second thread spins, on a core that clients and the event loop need meanwhile.
A very small one is computed by the event loop itself (`worker`).
"""

from typing import Any

import torch
from torch import nn

WORTHWHILE = 5e8  # operations of a call from which several threads pay: about 10 ms of one
BRIEF = 5e7  # below which the event loop may wait for a call: about 1 ms
CHARACTERS = 4  # about as many make a token,
SAMPLES = 400  # and so many make a vector
PATCHES = 64  # of an image


class Threads:
    """How many threads compute a call of one model.

    Attributes:
        most: For large calls.
        weights: Numbers in the matrices that every vector is multiplied with.
    """

    def __init__(self, model: nn.Module) -> None:
        self.most = torch.get_num_threads()
        tables = {id(one.weight) for one in model.modules() if isinstance(one, nn.Embedding)}
        self.weights = sum(
            one.numel() for one in model.parameters() if one.ndim > 1 and id(one) not in tables
        )

    def choose(self, vectors: int) -> None:
        """Use as many as this number of vectors is worth, in this thread."""
        many = self._operations(vectors) >= WORTHWHILE
        torch.set_num_threads(self.most if many else 1)

    def is_brief(self, vectors: int) -> bool:
        """Whether a call for this number of vectors ends soon enough for the event loop."""
        return self._operations(vectors) < BRIEF

    def _operations(self, vectors: int) -> int:
        return 2 * self.weights * vectors


def vectors_of(inputs: list[Any]) -> int:
    """About how many vectors a model makes of some texts, recordings or images."""
    return sum(map(vectors_in, inputs))


def vectors_in(given: Any) -> int:
    if isinstance(given, str):
        return len(given) // CHARACTERS
    return PATCHES if given.ndim == 3 else len(given) // SAMPLES
