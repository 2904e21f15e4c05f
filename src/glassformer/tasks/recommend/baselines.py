"""Simple recommenders: popularity, means, biases of users and items, and any other scorer."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int

from glassformer.tasks.recommend.answers import Recommended, ranked
from glassformer.tasks.recommend.questions import QuestionBatch, Questions

SHRINK = 5.0  # ratings at the mean that each item starts with
SHRINKS = (2.0, 5.0, 10.0)  # of those, tried for biases
ROUNDS = 5  # in which biases of users and of items are solved for in turn
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


@dataclass(frozen=True, slots=True)
class Biases:
    """A rating is the mean of all, and what its user and its item add to it.

    As in section 2.1 of Koren, "Factor in the Neighbors", 2010: a bias is the mean of what is left
    of the ratings, with some more ratings of which nothing is left.
    """

    mean: float
    users: Float[np.ndarray, " U"]
    items: Scores
    shrink: float

    @classmethod
    def fit(cls, rows: TrainingRows, shrink: float) -> "Biases":
        """Solve for the users and the items in turn."""
        users, items = (np.zeros(size) for size in rows.sizes)
        counts = [
            np.bincount(column, minlength=size) + shrink
            for column, size in zip((rows.users, rows.items), rows.sizes, strict=True)
        ]
        left = rows.ratings - rows.mean
        for _ in range(ROUNDS):
            items = np.bincount(rows.items, left - users[rows.users], len(items)) / counts[1]
            users = np.bincount(rows.users, left - items[rows.items], len(users)) / counts[0]
        return cls(rows.mean, users, items, shrink)

    def __call__(self, asked: Questions) -> Scores:
        """The rating of every item; the bias of a new user follows from what they rated."""
        if asked.known:
            user = float(self.users[asked.owner])
        else:
            left = asked.history.ratings - self.mean - self.items[asked.history.items]
            user = float(left.sum() / (len(left) + self.shrink))
        return self.mean + self.items + user


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
