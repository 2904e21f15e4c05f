"""Factors: a vector and a bias for each user and item. Koren et al., "Matrix Factorization", 2009.

    score(user, item) = mean + bias of user + bias of item + user · item

Ratings are learned by squared error. Of implicit feedback only the items that a user took are
known: each must score above others drawn at random, by softmax or in pairs (BPR, Rendle et al.,
2009). A penalty on the squared norms keeps what few rows say close to the mean.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.data.batches import row_noise
from glassformer.models.transformer import Noise
from glassformer.tasks.recommend.interactions import Interactions
from glassformer.tasks.recommend.new_users import NewUsers
from glassformer.tasks.recommend.questions import QuestionBatch
from glassformer.tasks.recommend.settings import RecommendConfig
from glassformer.tasks.task import Loss

SPREAD = 0.05  # of fresh vectors

Scored = tuple[Float[Tensor, "N K"], Float[Tensor, " N"]]  # scores, squared norms


class FactorModel(nn.Module):
    """Scores pairs of users and items."""

    def __init__(self, users: int, items: int, features: int, mean: float) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, features), nn.Embedding(items, features)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        self.mean = mean
        for table in (self.users, self.items):
            nn.init.normal_(table.weight, std=SPREAD)
        for table in (self.user_bias, self.item_bias):
            nn.init.zeros_(table.weight)

    def forward(
        self,
        users: Int[Tensor, " N"],
        items: Int[Tensor, "N K"],
        *,
        layout: Layout,
        noise: Noise | None = None,
    ) -> Scored:
        """The scores of some items for each user, and the squared norms of all that they use."""
        user, item = self.users(users), self.items(items)
        biases = self.user_bias(users), self.item_bias(items)[..., 0]  # (N, 1), (N, K)
        sizes = user.square().sum(1) + item.square().sum(2).mean(1)
        sizes = sizes + sum(bias.square().mean(1) for bias in biases)
        if noise is not None:
            user = noise(user, layout)
        scores = self.mean + biases[0] + biases[1] + (item @ user[..., None])[..., 0]  # (N, K)
        return scores, sizes

    def of_users(self, users: Float[Tensor, "N E"]) -> Float[Tensor, "N I"]:
        """The scores of all items for users, each with its bias as the last feature."""
        known = users[:, :-1] @ self.items.weight.T + self.item_bias.weight[:, 0]
        return self.mean + known + users[:, -1:]

    def user_table(self) -> Float[Tensor, "U E"]:
        """All users, each with its bias as the last feature."""
        return torch.cat([self.users.weight, self.user_bias.weight], dim=1)


@dataclass(frozen=True, slots=True)
class PairBatch:
    """Users and the item each took, with others beside it where there are no ratings."""

    users: Int[Tensor, " N"]
    items: Int[Tensor, "N K"]
    ratings: Float[Tensor, " N"]
    layout: Layout

    @property
    def tokens(self) -> int:
        """How many rows there are."""
        return len(self.users)

    def to(self, device: torch.device) -> "PairBatch":
        """The same on another device."""
        users, items, ratings = (x.to(device) for x in (self.users, self.items, self.ratings))
        return PairBatch(users, items, ratings, self.layout.to(device))


class Factors:
    """How vectors and biases are learned and used."""

    default_epochs = 20.0

    def __init__(self, settings: RecommendConfig, sizes: tuple[int, int], mean: float) -> None:
        self.settings, self.mean = settings, mean
        self.users, self.items = sizes
        self.deviation = 1.0  # of ratings around what is predicted

    @property
    def explicit(self) -> bool:
        """Whether ratings are learned."""
        return self.settings.feedback == "explicit"

    def model(self) -> FactorModel:
        """A model with fresh weights."""
        mean = self.mean if self.explicit else 0.0
        return FactorModel(self.users, self.items, self.settings.features, mean)

    def lengths(self, rows: int) -> Int[np.ndarray, " rows"]:
        """One for each row."""
        return np.ones(rows, dtype=np.int64)

    def batch(
        self, found: Interactions, numbers: Int[np.ndarray, " N"], seed: int, epoch: int | None
    ) -> PairBatch:
        """Some training rows, each with other items where there are no ratings."""
        items = found.items[numbers][:, None].astype(np.int64)
        if not self.explicit:
            each = np.full(len(numbers), self.settings.negatives)
            drawn = row_noise(seed, epoch or 0, numbers, each) * self.items
            items = np.concatenate([items, drawn.astype(np.int64).reshape(len(numbers), -1)], 1)
        return PairBatch(
            torch.from_numpy(found.users[numbers].astype(np.int64)),
            torch.from_numpy(items),
            torch.from_numpy(np.array(found.ratings[numbers])),
            Layout.packed(torch.ones(len(numbers), dtype=torch.long)),
        )

    def forward(self, model: nn.Module, batch: PairBatch, noise: Noise | None) -> Scored:
        """The scores of the items of each row, and the norms to keep small."""
        return model(batch.users, batch.items, layout=batch.layout, noise=noise)

    def loss(self, output: Scored, batch: PairBatch) -> Loss:
        """Squared errors, or how far items are from scoring above the others."""
        scores, sizes = output
        losses = self._losses(scores.float(), batch) + self.settings.penalty * sizes.float()
        return Loss(losses.sum(), scores.new_tensor(len(scores), dtype=torch.float32))

    def _losses(self, scores: Float[Tensor, "N K"], batch: PairBatch) -> Float[Tensor, " N"]:
        if self.explicit:
            return (scores[:, 0] - batch.ratings).square()
        same = batch.items[:, 1:] == batch.items[:, :1]  # drawn, but the item itself
        right, others = scores[:, :1], scores[:, 1:].masked_fill(same, -torch.inf)
        if self.settings.loss == "softmax":
            return torch.cat([right, others], dim=1).logsumexp(1) - right[:, 0]
        counts = (~same).sum(1).clamp(min=1)
        return F.softplus(others - right).sum(1) / counts

    def divergence(self, a: Scored, b: Scored, batch: PairBatch) -> Loss:
        """Half the squared difference of ratings, or the divergence of the chances of the items."""
        first, second = a[0].float(), b[0].float()
        if self.explicit:
            apart = (first - second).square().sum(1) / 2
        else:
            log_a, log_b = first.log_softmax(1), second.log_softmax(1)
            apart = (log_a.exp() * (log_a - log_b)).sum(1)
        return Loss(apart.sum(), first.new_tensor(len(first)))

    def question_lengths(self, counts: Int[np.ndarray, " rows"]) -> Int[np.ndarray, " rows"]:
        """One for each question."""
        return np.ones(len(counts), dtype=np.int64)

    def scores(self, model: nn.Module, batch: QuestionBatch) -> Float[Tensor, "Q I"]:
        """The score of every item for each question."""
        assert isinstance(model, FactorModel)
        return model.of_users(self._users(model, batch).repeat_interleave(self._each(batch), 0))

    def unseen(self, model: nn.Module, batch: QuestionBatch) -> Float[Tensor, " Q"]:
        """The rating of an item that nobody rated: that of a mean item."""
        assert isinstance(model, FactorModel)
        return model.mean + self._users(model, batch)[:, -1].repeat_interleave(self._each(batch))

    def _each(self, batch: QuestionBatch) -> Int[Tensor, " users"]:
        return torch.tensor([len(one) for one in batch.users], device=batch.device)

    def _users(self, model: FactorModel, batch: QuestionBatch) -> Float[Tensor, "users E"]:
        """The vector and bias of each user; of a new one, by what they are known to have taken."""
        table = model.user_table().float()
        numbers = [one.owner if one.known else 0 for one in batch.users]
        found = table[torch.tensor(numbers, device=table.device)]
        new = [n for n, one in enumerate(batch.users) if not one.known]
        if new:
            biases = model.mean + model.item_bias.weight[:, 0]
            deviation = self.deviation if self.explicit else None
            fit = NewUsers.of(table, model.items.weight, biases, deviation)
            vectors = np.stack([fit(batch.users[n].history) for n in new])
            found[new] = torch.from_numpy(vectors).to(found)
        return found

    def vectors(self, model: nn.Module) -> Float[np.ndarray, "I D"]:
        """The vector of each item."""
        assert isinstance(model, FactorModel)
        return model.items.weight.detach().float().cpu().numpy()

    def features(self, model: nn.Module) -> Float[np.ndarray, "I D"]:
        """The same, turned so that the first feature sets scores apart most, then the second."""
        assert isinstance(model, FactorModel)
        users = model.users.weight.detach().float().cpu().numpy()
        return turned(users, self.vectors(model))


def turned(
    users: Float[np.ndarray, "U D"], items: Float[np.ndarray, "I D"]
) -> Float[np.ndarray, "I D"]:
    """Items in the singular directions of the table of users times items, the largest first."""
    tall = np.linalg.qr(users - users.mean(0))[1]  # (D, D), whose product with items says as much
    _, sizes, directions = np.linalg.svd(tall @ items.T, full_matrices=False)
    return directions.T * sizes / np.sqrt(len(users))
