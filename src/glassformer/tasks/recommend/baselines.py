"""Simple recommenders: the most popular items, the mean rating of an item, and least squares.

Alternating least squares solves for all users with the items fixed, then for all items, and so on:
Zhou et al., 2008, for ratings; Hu et al., 2008, for implicit feedback, where all that a user did
not take counts as a weak no.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int

from glassformer.tasks.recommend.answers import Recommended, ranked
from glassformer.tasks.recommend.histories import History
from glassformer.tasks.recommend.questions import QuestionBatch, Questions

ROUNDS = 10
SHRINK = 5.0  # ratings at the mean that each item starts with
CONFIDENCE = 20.0  # in what a user took, relative to what they did not
RANKS = (2, 8, 16)
RIDGES = (0.02, 0.06)
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


class LeastSquares:
    """Users and items by alternating least squares; the last two features are the biases.

    A user is (vector, bias, 1), an item (vector, 1, bias).
    """

    def __init__(self, rows: TrainingRows, rank: int, ridge: float) -> None:
        self.rows, self.rank, self.ridge = rows, rank, ridge
        rng = np.random.default_rng(0)
        users, items = rows.sizes
        self.items = rng.normal(0, 0.1, (items, rank + 1))
        self.users = np.zeros((users, rank + 1))
        by_user, by_item = _by(rows.users, users), _by(rows.items, items)
        for _ in range(ROUNDS):
            self.users = self._solved(by_user, rows.items, self.items)
            self.items = self._solved(by_item, rows.users, self.users)

    def _solved(
        self,
        groups: Sequence[Int[np.ndarray, " _"]],
        others: Int[np.ndarray, " N"],
        fixed: Float[np.ndarray, "M R"],
    ) -> Float[np.ndarray, "G R"]:
        """The best vectors of one side, given those of the other."""
        whole = None if self.rows.explicit else fixed[:, :-1].T @ fixed[:, :-1]
        found = (
            self._one(fixed[others[group]], self.rows.ratings[group], whole) for group in groups
        )
        return np.stack(list(found))

    def _one(
        self,
        fixed: Float[np.ndarray, "_ R"],
        ratings: Float[np.ndarray, " _"],
        whole: Float[np.ndarray, "F F"] | None,
    ) -> Float[np.ndarray, " R"]:
        """The vector and bias of a user or an item, from the others it is known with."""
        rank = self.rank
        if not len(fixed):
            return np.zeros(rank + 1)
        if whole is not None:
            x = fixed[:, :rank]
            left = whole + CONFIDENCE * x.T @ x + self.ridge * len(x) * np.eye(rank)
            return np.append(np.linalg.solve(left, (1 + CONFIDENCE) * x.sum(0)), 0.0)
        x = np.hstack([fixed[:, :rank], np.ones((len(fixed), 1))])
        left = x.T @ x + self.ridge * len(x) * np.eye(rank + 1)
        return np.linalg.solve(left, x.T @ (ratings - self.rows.mean - fixed[:, rank]))

    def __call__(self, asked: Questions) -> Scores:
        user = self.users[asked.owner] if asked.known else self._new(asked.history)
        scores = self.items[:, : self.rank] @ user[: self.rank] + self.items[:, self.rank]
        return scores + user[self.rank] + (self.rows.mean if self.rows.explicit else 0.0)

    def _new(self, history: History) -> Float[np.ndarray, " R"]:
        whole = None if self.rows.explicit else self.items[:, :-1].T @ self.items[:, :-1]
        return self._one(self.items[history.items], history.ratings, whole)


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


def _by(owners: Int[np.ndarray, " N"], count: int) -> list[Int[np.ndarray, " _"]]:
    """The rows of each owner."""
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(count), side="right")
    return np.split(order, ends[:-1])
