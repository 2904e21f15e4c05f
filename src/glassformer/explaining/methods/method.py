"""What a method of explanation is: the influence of every piece on every target."""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from glassformer.explaining.subject import Subject

FEW_PASSES, FEW_VECTORS = 3, 4096

Influence = Float[Tensor, "targets pieces"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Method:
    """A way to find the influence of pieces.

    Attributes:
        influence: How much each piece speaks for (positive) or against (negative) each target.
        passes: How often it reads an input of so many pieces, a pass with gradients counting three.
        attends: Whether it needs the weights of attention.
        inside: Whether it looks inside the network: it says nothing where n-grams alone answer.
        signed: Whether it tells for from against; otherwise, it tells how much a piece counts.
    """

    influence: Callable[[Subject], Influence]
    passes: Callable[[int], int]
    attends: bool = False
    inside: bool = True
    signed: bool = True

    def is_affordable(self, subject: Subject) -> bool:
        """Whether it takes a moment: a pass or three, or few vectors to read."""
        passes = self.passes(len(subject.pieces))
        return passes <= FEW_PASSES or passes * subject.piece_of.numel() <= FEW_VECTORS
