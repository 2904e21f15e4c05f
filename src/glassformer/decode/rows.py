"""Which rows of a batch are still being written, and the answers of those that are not."""

from collections.abc import Sequence

import torch

from glassformer.decode.paths import Hypothesis, Paths
from glassformer.errors import GlassformerError


class Rows:
    """Rows leave the batch when they have ended, a few at a time.

    Args:
        count: How many there are at first.
        compact_below: They leave once fewer than this share of the present ones go on.
    """

    def __init__(self, count: int, compact_below: float) -> None:
        self.present, self.compact_below = list(range(count)), compact_below
        self.answers: list[list[Hypothesis]] = [[] for _ in range(count)]

    def staying(self, going_on: Sequence[bool]) -> list[int] | None:
        """Places of the rows that stay when the others leave now; None while nobody leaves."""
        stay = [place for place, goes_on in enumerate(going_on) if goes_on]
        return stay if not stay or len(stay) < self.compact_below * len(going_on) else None

    def leave(self, stay: Sequence[int], paths: Paths) -> None:
        """Keep the answers of all rows that do not stay."""
        gone = [place for place in range(len(self.present)) if place not in set(stay)]
        at = torch.tensor(gone, dtype=torch.long, device=paths.total.device)
        for place, answers in zip(gone, paths.kept(at).answers(), strict=True):
            if not answers:
                raise GlassformerError(
                    f"row {self.present[place] + 1}: nothing can be said under the rules given; "
                    f"forbid less, or lower decode.min_length and decode.no_repeat"
                )
            self.answers[self.present[place]] = answers
        self.present = [self.present[place] for place in stay]
