"""The vector of a user who was not there in training, from the items they are known to have taken.

Users are taken as draws from a normal distribution with the mean and covariance of the users of
training. Given some items, the likeliest vector follows: for ratings, with normal errors, in closed
form; for implicit feedback, with a softmax over all items, by Newton's method.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from glassformer.tasks.recommend.histories import History

ROUNDS = 15
LEAST = 1e-3  # variance of a feature


@dataclass(frozen=True, slots=True)
class NewUsers:
    """Fits vectors; the last feature of a user is the bias.

    Attributes:
        items: All items, each with a one for the bias of the user.
        biases: What each item scores without its vector.
        deviation: Of ratings; None for implicit feedback.
    """

    items: Float[np.ndarray, "I E"]
    biases: Float[np.ndarray, " I"]
    mean: Float[np.ndarray, " E"]
    precision: Float[np.ndarray, "E E"]
    deviation: float | None

    @classmethod
    def of(
        cls,
        users: Float[Tensor, "U E"],
        items: Float[Tensor, "I D"],
        biases: Float[Tensor, " I"],
        deviation: float | None,
    ) -> "NewUsers":
        """For the users, items and biases of a model; the last feature of a user is the bias."""
        table = _array(users)
        covariance = np.cov(table.T) if len(table) > 1 else np.zeros((table.shape[1],) * 2)
        precision = np.linalg.inv(covariance + LEAST * np.eye(table.shape[1]))
        known = np.hstack([_array(items), np.ones((len(items), 1))])
        return cls(known, _array(biases), table.mean(0), precision, deviation)

    def __call__(self, history: History) -> Float[np.ndarray, " E"]:
        """The likeliest vector of a user with this history."""
        if not len(history.items):
            return self.mean
        return self._taking(history) if self.deviation is None else self._rating(history)

    def _rating(self, history: History) -> Float[np.ndarray, " E"]:
        assert self.deviation is not None
        items, noise = self.items[history.items], self.deviation**2
        rest = history.ratings - self.biases[history.items]
        left = self.precision + items.T @ items / noise
        return np.linalg.solve(left, self.precision @ self.mean + items.T @ rest / noise)

    def _taking(self, history: History) -> Float[np.ndarray, " E"]:
        user, taken = self.mean, self.items[history.items].sum(0)
        for _ in range(ROUNDS):
            scores = self.items @ user + self.biases
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            expected = chances @ self.items
            slope = taken - len(history.items) * expected - self.precision @ (user - self.mean)
            spread = (self.items.T * chances) @ self.items - np.outer(expected, expected)
            step = np.linalg.solve(len(history.items) * spread + self.precision, slope)
            user = user + step / max(1.0, float(np.linalg.norm(step)))
        return user


def _array(x: Tensor) -> Float[np.ndarray, "N ..."]:
    return x.detach().double().cpu().numpy()
