"""Answers to held-out rows: a rating, the rank of the item, and the list it stands in."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer import processes
from glassformer.errors import NonFiniteScoresError
from glassformer.metrics.intervals import Score
from glassformer.metrics.measurement import Measurement
from glassformer.metrics.paired import Comparison
from glassformer.metrics.ranking import (
    FIRST,
    coverage,
    discounted_gains,
    hits,
    mean_by_user,
    root_mean_square,
)
from glassformer.metrics.translation import translation_comparison


@dataclass(frozen=True, eq=False)
class Recommended:
    """What is predicted for some rows, in their order.

    Attributes:
        rows: The number of each row in its split.
        ratings: NaN without ratings; `predicted` likewise.
        ranks: Where the right item stands among those not known; beyond all if it is not known.
        lists: The first items that are recommended.
        items: How many items there are.
        liked: The rating from which a row counts as one to recommend; None without ratings.
    """

    rows: Int[np.ndarray, " N"]
    users: Int[np.ndarray, " N"]
    ratings: Float[np.ndarray, " N"]
    predicted: Float[np.ndarray, " N"]
    ranks: Float[np.ndarray, " N"]
    lists: Int[np.ndarray, "N first"]
    items: int
    liked: float | None

    @classmethod
    def gather(
        cls,
        columns: Float[Tensor, "N 5"],
        lists: Int[Tensor, "N first"],
        *,
        items: int,
        liked: float | None,
    ) -> "Recommended":
        """From what was predicted in this process, and in the others.

        Args:
            columns: The row, the user, the rating, the predicted rating and the rank of each.
        """
        table = processes.gathered(columns.detach().double()).cpu().numpy()
        found = processes.gathered(lists).cpu().numpy()
        order = np.argsort(table[:, 0], kind="stable")
        table, found = table[order], found[order]
        if not np.isfinite(table[:, 4]).all():
            raise NonFiniteScoresError(
                "the model's scores are not finite: its training diverged or its weights are "
                "damaged; train with a lower learning rate, or copy the run again"
            )
        return cls(
            rows=table[:, 0].astype(np.int64),
            users=table[:, 1].astype(np.int64),
            ratings=table[:, 2],
            predicted=table[:, 3],
            ranks=table[:, 4],
            lists=found,
            items=items,
            liked=liked,
        )

    @property
    def recommendable(self) -> Bool[np.ndarray, " N"]:
        """The rows whose item should be recommended: all, or those with good ratings."""
        if self.liked is None:
            return np.ones(len(self.rows), dtype=bool)
        return self.ratings >= self.liked

    @cached_property
    def measurements(self) -> dict[str, Measurement]:
        """The scores of ratings and of ranks."""
        found: dict[str, Measurement] = {}
        if self.liked is not None:
            found["rmse"] = root_mean_square(self.predicted - self.ratings, self.users)
        asked = self.recommendable
        if asked.any():
            ranks, users = self.ranks[asked], self.users[asked]
            found["ndcg"] = mean_by_user(discounted_gains(ranks), users)
            found["hit_rate"] = mean_by_user(hits(ranks), users)
        return found

    def values(self) -> dict[str, float]:
        """The scores without intervals."""
        sums = {name: one.rows.sum(0, keepdims=True) for name, one in self.measurements.items()}
        found = {name: float(self.measurements[name].statistic(sums[name])[0]) for name in sums}
        return found | {"coverage": coverage(self.lists, self.items)}

    def scores(self) -> dict[str, Score]:
        """The scores with intervals; coverage is a count, and has none."""
        share = coverage(self.lists, self.items)
        found = {name: one.score() for name, one in self.measurements.items()}
        return found | {"coverage": Score.without_interval(share, "")}

    def compared_with(self, other: "Recommended") -> dict[str, Comparison]:
        """How much better these are than the other's, by user."""
        return translation_comparison(self.measurements, other.measurements)


def ranked(
    scores: Float[Tensor, "Q I"], seen: Bool[Tensor, "Q I"], items: Int[Tensor, " Q"]
) -> tuple[Float[Tensor, " Q"], Int[Tensor, "Q first"]]:
    """The rank of each right item among those that are not seen, and the first items."""
    scores = scores.masked_fill(seen, -torch.inf)
    right = scores.gather(1, items.clamp(min=0)[:, None])  # (Q, 1)
    above, same = (scores > right).sum(1), (scores == right).sum(1)
    ranks = 1 + above + (same - 1) / 2
    ranks = ranks.masked_fill(items < 0, scores.shape[1] + 1.0)
    best = scores.topk(min(FIRST, scores.shape[1]), dim=1)
    lists = best.indices.masked_fill(best.values == -torch.inf, -1)
    return ranks.masked_fill(~right[:, 0].isfinite() & (items >= 0), torch.nan), lists
