"""Least squares, the baseline of `recommend`; a run keeps it in `least_squares.safetensors`.

Alternating least squares solves for all users with the items fixed, then for all items, and so on:
Zhou et al., 2008, for ratings; Hu et al., 2008, for implicit feedback, where all that a user did
not take counts as a weak no. The latter is left to the library `implicit` where it is installed.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.numpy import save_file

from glassformer.errors import GlassformerError
from glassformer.files import read_arrays, replacing
from glassformer.tasks.recommend.baselines import Scores, TrainingRows
from glassformer.tasks.recommend.histories import History
from glassformer.tasks.recommend.questions import Questions

TENSORS = "least_squares.safetensors"
ROUNDS = 10
CONFIDENCE = 20.0  # in what a user took, relative to what they did not
RANKS = (2, 8, 16)
RIDGES = (0.02, 0.06)


@dataclass(slots=True)
class LeastSquares:
    """Users and items by alternating least squares; the last feature of each is its bias.

    Attributes:
        mean: The mean rating; 0 for implicit feedback.
    """

    users: Float[np.ndarray, "U R"]
    items: Float[np.ndarray, "I R"]
    ridge: float
    mean: float
    explicit: bool

    @classmethod
    def fit(cls, rows: TrainingRows, rank: int, ridge: float) -> "LeastSquares":
        """Solve for the users and the items in turn."""
        if not rows.explicit and (library := implicit_library()) is not None:
            return cls._by_library(library, rows, rank, ridge)
        rng = np.random.default_rng(0)
        users, items = rows.sizes
        mean = rows.mean if rows.explicit else 0.0
        first = rng.normal(0, 0.1, (items, rank + 1))
        found = cls(np.zeros((users, rank + 1)), first, ridge, mean, rows.explicit)
        by_user, by_item = _by(rows.users, users), _by(rows.items, items)
        for _ in range(ROUNDS):
            found.users = found._solved(by_user, rows.items, found.items, rows.ratings)
            found.items = found._solved(by_item, rows.users, found.users, rows.ratings)
        return found

    @classmethod
    def _by_library(
        cls, library: Any, rows: TrainingRows, rank: int, ridge: float
    ) -> "LeastSquares":
        """The same by `implicit`, which has one ridge for all users: that of the mean user."""
        weights = np.full(len(rows.users), 1 + CONFIDENCE, np.float32)
        sparse = import_module("scipy.sparse")
        taken = sparse.csr_matrix((weights, (rows.users, rows.items)), shape=rows.sizes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # advice on threads
            model = library.AlternatingLeastSquares(
                factors=rank,
                regularization=ridge * len(weights) / max(1, rows.sizes[0]),
                alpha=1.0,
                iterations=ROUNDS,
                random_state=0,
                use_gpu=False,
            )
        model.fit(taken, show_progress=False)
        users, items = (
            np.pad(x.astype(np.float64), ((0, 0), (0, 1)))
            for x in (model.user_factors, model.item_factors)
        )
        return cls(users, items, ridge, 0.0, explicit=False)

    @property
    def rank(self) -> int:
        """The number of features, without the bias."""
        return self.items.shape[1] - 1

    def _solved(
        self,
        groups: Sequence[Int[np.ndarray, " _"]],
        others: Int[np.ndarray, " N"],
        fixed: Float[np.ndarray, "M R"],
        ratings: Float[np.ndarray, " N"],
    ) -> Float[np.ndarray, "G R"]:
        """The best vectors of one side, given those of the other."""
        whole = None if self.explicit else fixed[:, :-1].T @ fixed[:, :-1]
        found = (self._one(fixed[others[group]], ratings[group], whole) for group in groups)
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
        return np.linalg.solve(left, x.T @ (ratings - self.mean - fixed[:, rank]))

    def __call__(self, asked: Questions) -> Scores:
        user = self.users[asked.owner] if asked.known else self._new(asked.history)
        scores = self.items[:, : self.rank] @ user[: self.rank] + self.items[:, self.rank]
        return scores + user[self.rank] + self.mean

    def _new(self, history: History) -> Float[np.ndarray, " R"]:
        whole = None if self.explicit else self.items[:, :-1].T @ self.items[:, :-1]
        return self._one(self.items[history.items], history.ratings, whole)

    def save(self, folder: Path) -> None:
        """Write the vectors and how new users are solved for."""
        numbers = np.array([self.ridge, self.mean, self.explicit])
        tensors = {"users": self.users, "items": self.items, "numbers": numbers}
        with replacing(folder / TENSORS) as half:
            save_file({name: np.ascontiguousarray(one) for name, one in tensors.items()}, half)

    @staticmethod
    def load(folder: Path) -> "LeastSquares | None":
        """What `save` wrote; None if the run keeps no vectors."""
        if not (folder / TENSORS).exists():
            return None
        try:
            found = read_arrays(folder / TENSORS)
            ridge, mean, explicit = found["numbers"].tolist()
            if found["users"].shape[1:] != found["items"].shape[1:]:
                raise ValueError("users and items have different features")
            return LeastSquares(found["users"], found["items"], ridge, mean, bool(explicit))
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise GlassformerError(
                f"{folder / TENSORS}: not the baseline of a run ({error}); copy the run again"
            ) from None


def implicit_library() -> Any:
    """The library's alternating least squares; None where it is not installed."""
    try:
        return import_module("implicit.als")
    except ImportError:
        return None


def _by(owners: Int[np.ndarray, " N"], count: int) -> list[Int[np.ndarray, " _"]]:
    """The rows of each owner."""
    order = np.argsort(owners, kind="stable")
    ends = np.searchsorted(owners[order], np.arange(count), side="right")
    return np.split(order, ends[:-1])
