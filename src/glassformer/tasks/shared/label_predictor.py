"""What predictors of labels share."""

from copy import copy
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.config import require
from glassformer.tasks.shared.labels import Labels


class NextBest:
    """A predictor that shows the next likely labels on request.

    Attributes:
        alternatives: How many.
    """

    alternatives = 0

    def configured(self, *, alternatives: int = 0, **options: Any) -> Any:
        """The same predictor with this many alternatives."""
        require(alternatives >= 0, f"alternatives must be 0 or more, got {alternatives}")
        other = copy(self)
        other.alternatives = alternatives
        return other


def unlabelled(labels: Labels, rows: int) -> Int[Tensor, "rows ..."]:
    """Labels for inputs that have none."""
    return torch.zeros((rows, len(labels.names)) if labels.multi else (rows,), dtype=torch.long)
