"""Which rows of a batch are still being written, and the answers of those that are not."""

from collections.abc import Sequence

import torch

from glassformer.decode.paths import Hypothesis, Paths
from glassformer.errors import GlassformerError


class NoNumbersError(GlassformerError):
    """Scores of a model that are no numbers."""


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
        gone = sorted({*range(len(self.present))} - {*stay})
        at = torch.tensor(gone, dtype=torch.long, device=paths.total.device)
        left = paths.kept(at)
        for place, total, answers in zip(gone, left.total, left.answers(), strict=True):
            row = self.present[place]
            if not answers:
                raise _silent(row, are_numbers=not total.isnan().any())
            self.answers[row] = answers
        self.present = [self.present[place] for place in stay]


def _silent(row: int, *, are_numbers: bool) -> GlassformerError:
    """Why a row has no answers."""
    if are_numbers:
        return GlassformerError(
            f"row {row + 1}: nothing can be said under the rules given; "
            f"forbid less, or lower decode.min_length and decode.no_repeat"
        )
    return NoNumbersError(
        f"row {row + 1}: the model's scores are not numbers, its training diverged or its weights "
        f"are damaged; train at a lower rate, or copy the run again"
    )
