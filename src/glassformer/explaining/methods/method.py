"""What a method of explanation is: the influence of every piece on every target."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from glassformer.explaining.subject import Subject

Influence = Float[Tensor, "targets pieces"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A way to find the influence of pieces.

    Attributes:
        influence: How much each piece speaks for (positive) or against (negative) each target.
        passes: How often it reads an input of so many pieces, a pass with gradients counting three.
        attention: Whether it needs a model that attends.
    """

    influence: Callable[[Subject], Influence]
    passes: Callable[[int], int]
    attention: bool = False
