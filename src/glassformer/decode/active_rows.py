"""Which rows of a batch are still being decoded, and the answers of those that are finished."""

from collections.abc import Sequence

import torch

from glassformer.decode.no_answer import no_answer
from glassformer.decode.paths import Hypothesis, Paths


class ActiveRows:
    """Finished rows leave the batch, several at a time.

    Args:
        count: How many rows there are at first.
        compact_below: Finished rows leave once fewer than this share of the batch is unfinished.
    """

    def __init__(self, count: int, compact_below: float) -> None:
        self.active, self.compact_below = list(range(count)), compact_below
        self.answers: list[list[Hypothesis]] = [[] for _ in range(count)]

    def select(self, unfinished: Sequence[bool]) -> list[int] | None:
        """Indices of the rows to keep if the others leave now; None if none leaves yet."""
        keep = [index for index, active in enumerate(unfinished) if active]
        return keep if not keep or len(keep) < self.compact_below * len(unfinished) else None

    def retire(self, keep: Sequence[int], paths: Paths) -> None:
        """Store the answers of all rows that are not kept."""
        finished = sorted({*range(len(self.active))} - {*keep})
        indices = torch.tensor(finished, dtype=torch.long, device=paths.total.device)
        selected = paths.select_rows(indices)
        for index, total, answers in zip(finished, selected.total, selected.answers(), strict=True):
            row = self.active[index]
            if not answers:
                raise no_answer(is_nan=bool(total.isnan().any()), row=f"row {row + 1}: ")
            self.answers[row] = answers
        self.active = [self.active[index] for index in keep]
