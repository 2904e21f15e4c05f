"""The next items of a user, whether training had them or not, and items similar to another."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from glassformer.config import require
from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.explaining.views.pictures import check_picture
from glassformer.tasks.predictor import Prediction, Predictor
from glassformer.tasks.recommend.data import number_of
from glassformer.tasks.recommend.histories import NOTHING, History
from glassformer.tasks.recommend.least_squares import LeastSquares
from glassformer.tasks.recommend.names import UNKNOWN
from glassformer.tasks.recommend.picture import draw_items
from glassformer.tasks.recommend.questions import QuestionBatch, Questions
from glassformer.tasks.recommend.task import RecommendTask
from glassformer.tasks.served import NameReader

OTHERS = 9  # items after the first, in the details


class RecommendPredictor(Predictor[RecommendTask, str], NameReader):
    """The items that a user is likeliest to like next, or those most similar to an item.

    Attributes:
        others: How many are in the details after the first.
        shown: Whether they are shown, too.
        likes: What the user took, besides what is known of them.
        similar: Whether inputs are items.
        stored: The baseline, if it answers in place of the model.
    """

    noun = "user"
    reads: Sequence[str] = ("user",)
    blank = ""
    others = OTHERS
    shown = False
    likes: History = NOTHING
    similar = False
    picture: Path | None = None
    stored: LeastSquares | None = None

    def configured(self, **options: Any) -> "RecommendPredictor":
        other = copy(self)
        if options.get("alternatives") is not None:
            other.others, other.shown = options["alternatives"], True
            require(other.others >= 0, f"alternatives must be 0 or more, got {other.others}")
        other.similar = bool(options.get("similar"))
        other.reads = ("item",) if other.similar else ("user",)
        require(
            not (self.stored and options.get("picture")),
            "the baseline has no option picture; leave it out, or leave out --baseline",
        )
        if options.get("picture") is not None:
            other.picture = Path(options["picture"])
            check_picture(other.picture)
        likes = options.get("likes") or ()
        named = [self._liked(one) for one in ([likes] if isinstance(likes, str) else likes)]
        require(
            not (named and other.similar),
            "--similar is about an item, --likes about a user; leave out one of them",
        )
        items = np.array([item for item, _ in named], dtype=np.int32)
        other.likes = NOTHING.then(items, np.array([one for _, one in named], dtype=np.float32))
        return other

    def baseline(self) -> "RecommendPredictor | None":
        other = copy(self)
        other.stored = LeastSquares.load(self.task.folder)
        return other if other.stored else None

    def from_sample(self, sample: Sample) -> str:
        return str(sample["item" if self.similar else "user"])

    def example(self) -> str:
        return self.task.names.users.names[0]

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        for given in inputs:
            if not given.strip():
                yield Prediction("", 0.0, {}, empty=True)
            elif self.similar:
                yield self._neighbours(model, given)
            else:
                yield self._next_items(model, given)

    def _next_items(self, model: nn.Module, given: str) -> Prediction:
        user, history = self._user(given)
        asked = UNKNOWN if len(self.likes.items) else user  # a vector for all items together
        scores = self._scores(model, Questions.next_item(asked, history))
        if self.task.explicit:
            values = np.clip(scores, self.task.settings.lowest, self.task.settings.highest)
        else:
            values = softmax(scores, history.items)
        free = np.setdiff1d(np.arange(len(scores)), history.items)
        best = free[np.argsort(-scores[free], kind="stable")][: 1 + self.others]
        if not len(best):
            raise GlassformerError(f"{given!r} has taken all items there are; nothing is left")
        self._draw(model, best, history.items)
        confidence = self._chance(float(scores[best[0]]), float(values[best[0]]))
        name = "rating" if self.task.explicit else "probability"
        return self._prediction(best, values, name, confidence, known=user != UNKNOWN)

    def _scores(self, model: nn.Module, question: Questions) -> Float[np.ndarray, " I"]:
        """What the model, or the baseline, makes of every item."""
        if self.stored is not None:
            return self.stored(question)
        batch = QuestionBatch([question], next(model.parameters()).device)
        with torch.no_grad():
            return self.task.method.scores(model, batch).float().cpu().numpy()[0]

    def _neighbours(self, model: nn.Module, given: str) -> Prediction:
        item = self._item(given)
        stored = self.stored
        vectors = self.task.method.vectors(model) if stored is None else stored.items[:, :-1]
        lengths = np.linalg.norm(vectors, axis=1)
        cosines = vectors @ vectors[item] / np.maximum(lengths * lengths[item], 1e-12)
        others = np.delete(np.arange(len(vectors)), item)
        best = others[np.argsort(-cosines[others], kind="stable")][: 1 + self.others]
        self._draw(model, best, np.array([item]))
        return self._prediction(best, cosines, "similarity", max(0.0, float(cosines[best[0]])))

    def _prediction(
        self,
        best: Int[np.ndarray, " _"],
        values: Float[np.ndarray, " I"],
        name: str,
        confidence: float,
        *,
        known: bool = True,
    ) -> Prediction:
        names, shown = self.task.names.items.names, self.task.names.shown
        captions = self.task.names.captions
        items = [
            {
                "item": names[n],
                **({"caption": captions[n]} if captions else {}),
                name: round(float(values[n]), 4),
            }
            for n in best
        ]
        below = [f"  or {shown[n]}\t{values[n]:.3f}" for n in best[1:] if self.shown]
        details = {name: items[0][name], "items": items, "known_user": known}
        if name == "similarity":
            del details["known_user"]
        return Prediction(shown[best[0]], min(1.0, confidence), details, below=below)

    def _chance(self, score: float, value: float) -> float:
        """The probability that the user likes the first item, or takes it next."""
        if not self.task.explicit:
            return value
        assert self.task.settings.liked is not None
        beyond = (score - self.task.settings.liked) / max(self.task.scale["deviation"], 1e-6)
        return NormalDist().cdf(beyond)

    def _draw(
        self, model: nn.Module, best: Int[np.ndarray, " _"], known: Int[np.ndarray, " _"]
    ) -> None:
        if self.picture is not None:
            features = self.task.method.features(model)[:, :2]
            counts = self.task.histories.item_counts(len(features))
            draw_items(features, self.task.names.shown, counts, best, known, self.picture)

    def _user(self, given: str) -> tuple[int, History]:
        """The number of a user and what they took; a new one needs some items."""
        users = self.task.names.users
        user = users.find(given)
        if user == UNKNOWN and not len(self.likes.items):
            raise GlassformerError(
                f"{given!r} is no user of the training rows{users.near(given)} For a new one, give "
                f"items that they like (likes)".replace("rows For", "rows; for")
            )
        history = NOTHING if user == UNKNOWN else self.task.histories.of(user)
        return user, history.then(self.likes.items, self.likes.ratings)

    def _item(self, given: str) -> int:
        names = self.task.names
        found = names.find_item(given)
        if found == UNKNOWN:
            near = names.near_item(given) or "; name one as it is there"
            raise GlassformerError(f"{given!r} is no item of the training rows{near}")
        return found

    def _liked(self, given: str) -> tuple[int, float]:
        """An item, and how it is rated: as given after =, or as the best."""
        best = self.task.settings.highest if self.task.explicit else None
        best = np.nan if best is None else best
        if self.task.names.find_item(given) == UNKNOWN and "=" in given:
            name, _, typed = given.rpartition("=")
            rating, settings = number_of(typed), self.task.settings
            if rating is None or not self.task.explicit:
                return self._item(given), best
            assert settings.lowest is not None
            assert settings.highest is not None
            require(
                settings.lowest <= rating <= settings.highest,
                f"--likes {given}: ratings go from {settings.lowest:g} to {settings.highest:g}; "
                f"give one of these",
            )
            return self._item(name), rating
        return self._item(given), best


def softmax(
    scores: Float[np.ndarray, " I"], taken: Int[np.ndarray, " _"]
) -> Float[np.ndarray, " I"]:
    """The chance of each item to be next; none for those that are taken."""
    open_scores = scores.astype(np.float64)
    open_scores[taken] = -np.inf
    if not np.isfinite(open_scores).any():
        return np.zeros(len(scores))
    chances = np.exp(open_scores - open_scores.max())
    return chances / chances.sum()
