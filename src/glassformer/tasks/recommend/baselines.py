"""Simple recommenders: the most popular items, the mean rating of an item, and any other scorer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int

from glassformer.tasks.recommend.answers import Recommended, ranked
from glassformer.tasks.recommend.questions import QuestionBatch, Questions

SHRINK = 5.0  # ratings at the mean that each item starts with
TOGETHER = 512  # questions

Scores = Float[np.ndarray, " I"]
Scorer = Callable[[Questions], Scores]


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """The training rows as numbers; ratings are 1 for implicit feedback."""

    users: Int[np.ndarray, " N"]
    items: Int[np.ndarray, " N"]
    ratings: Float[np.ndarray, " N"]
    sizes: tuple[int, int]
    explicit: bool

    @property
    def mean(self) -> float:
        """The mean rating."""
        return float(self.ratings.mean())

    def popularity(self) -> Scores:
        """How many users took each item; for ratings, how many rated it above the mean."""
        liked = self.ratings >= self.mean
        return np.bincount(self.items[liked], minlength=self.sizes[1]).astype(np.float64)

    def item_means(self) -> Scores:
        """The mean rating of each item, with some ratings at the mean of all."""
        sums = np.bincount(self.items, self.ratings, minlength=self.sizes[1])
        counts = np.bincount(self.items, minlength=self.sizes[1])
        return (sums + SHRINK * self.mean) / (counts + SHRINK)


def recommended(
    scorer: Scorer,
    questions: Iterable[Questions],
    *,
    items: int,
    scale: tuple[float, float] | None,
    liked: float | None,
) -> Recommended:
    """The answers of a simple recommender.

    Args:
        scale: The ends of the ratings; None without ratings.
    """
    columns, lists, waiting = [], [], list(questions)
    sizes = np.cumsum([0, *map(len, waiting)])
    cuts = np.unique(np.searchsorted(sizes, [*range(0, int(sizes[-1]), TOGETHER), sizes[-1]]))
    for start, end in pairwise(cuts.tolist()):
        some = waiting[start:end]
        batch = QuestionBatch(some, torch.device("cpu"))
        each = [len(one) for one in some]
        scores = torch.from_numpy(np.repeat([scorer(one) for one in some], each, axis=0))
        right, ratings = batch.column("items").long(), batch.column("ratings")
        ranks, best = ranked(scores, batch.seen(items), right)
        predicted = torch.full_like(ratings, torch.nan, dtype=torch.double)
        if scale is not None:
            known = scores.gather(1, right.clamp(min=0)[:, None])[:, 0]
            predicted = torch.where(right < 0, scores.mean(1), known).clamp(*scale)
        owners = torch.tensor(np.repeat([one.owner for one in some], each))
        kinds = (batch.column("rows"), owners, ratings, predicted, ranks)
        columns.append(torch.stack([x.double() for x in kinds], dim=1))
        lists.append(best)
    return Recommended.gather(torch.cat(columns), torch.cat(lists), items=items, liked=liked)
