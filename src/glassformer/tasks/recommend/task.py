"""`recommend`: learn from ratings, or from what users took, what they will like next.

Two methods: `factors` gives each user and item a vector, whose product is the rating; `sasrec`
reads the items of a user in order with a decoder. Held-out rows are questions to either.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from glassformer.config import ModelConfig
from glassformer.config.run import Config
from glassformer.data.rows import listed
from glassformer.data.samples import SPLITS, Samples
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.models.transformer import Noise
from glassformer.tasks.job import JobTask
from glassformer.tasks.recommend.answers import Recommended, ranked
from glassformer.tasks.recommend.checks import UNTIMED
from glassformer.tasks.recommend.factors import Factors
from glassformer.tasks.recommend.histories import Histories
from glassformer.tasks.recommend.interactions import Interactions, RawRows
from glassformer.tasks.recommend.names import UNKNOWN, Names
from glassformer.tasks.recommend.questions import HeldOut, QuestionBatch
from glassformer.tasks.recommend.sasrec import SasRec, Sequences
from glassformer.tasks.recommend.settings import RecommendConfig
from glassformer.tasks.task import Loss
from glassformer.wording import counted

SCALE, REMARKS = "scale.json", "remarks.json"
TOGETHER = 16  # questions of a user that share one history


class RecommendTask(JobTask[Any, Any, Recommended]):
    """Users, items, and what is between them.

    Attributes:
        remarks: What was said about the rows when they were indexed.
    """

    name = "recommend"

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder = config, folder
        self.settings: RecommendConfig = config.task
        self.names = Names.load(folder)
        self.histories = Histories.open(folder, len(self.names.users), len(self.names.items))
        self.scale: dict[str, float] = read_json(folder / SCALE)
        self.method = self._method()
        self.samples, self.remarks = None, list[str]()
        if data is not None:
            self.samples, self.remarks = Samples.open(data), read_json(data / REMARKS)
            self.found = Interactions.open(data, len(self.samples), len(self.names.items))
        self.held_out = cache(self._held_out)
        self.sequences = cache(self._sequences)

    def _method(self) -> Factors | SasRec:
        users, items = len(self.names.users), len(self.names.items)
        if self.settings.method == "sasrec":
            return SasRec(self.config.model, items, self.settings.max_length)
        found = Factors(self.settings, (users, items), self.scale["mean"])
        found.deviation = self.scale["deviation"]
        return found

    @property
    def explicit(self) -> bool:
        """Whether ratings are predicted."""
        return self.settings.feedback == "explicit"

    @property
    def goal(self) -> str:  # type: ignore[override]
        """The score by which the best model is chosen."""
        return "rmse" if self.explicit else "ndcg"

    @property
    def higher_is_better(self) -> bool:  # type: ignore[override]
        """Whether more of the goal is better."""
        return not self.explicit

    @property
    def perfect(self) -> float:  # type: ignore[override]
        """What the goal would be without any mistake."""
        return 0.0 if self.explicit else 1.0

    @property
    def default_epochs(self) -> float:  # type: ignore[override]
        """How long to train when nobody says."""
        return self.method.default_epochs

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        raw = RawRows.read(samples)
        settings = with_feedback(config.task, raw)
        refuse_untimed(settings, raw)
        splits, _ = raw.usable(samples, settings)
        train = np.flatnonzero(splits == SPLITS.index("train"))
        users, items = (
            sorted({column[n] for n in train.tolist()}) for column in (raw.users, raw.items)
        )
        names = Names(users, items, raw.captions)
        refuse_few(names)
        names.save(folder)
        found = raw.numbers(names)
        Histories.write(folder, found, splits.astype(np.int64), len(names.users))
        settings, scale = scaled(settings, found.ratings[train])
        write_json(scale, folder / SCALE)
        return replace(config, task=settings, model=fitted(config.model, settings))

    def index(self, samples: Samples, data: Path) -> None:
        raw = RawRows.read(samples)
        splits, remarks = raw.usable(samples, self.settings)
        found = raw.numbers(self.names)
        Samples.assign(data, splits)
        found.save(data)
        held_out = (splits < len(SPLITS)) & (splits != SPLITS.index("train"))
        remarks += self._cold(raw, held_out & (found.items == UNKNOWN), "item")
        remarks += self._cold(raw, held_out & (found.users >= len(self.names.users)), "user")
        write_json(remarks, data / REMARKS)

    def _cold(self, raw: RawRows, rows: np.ndarray, role: str) -> list[str]:
        """What to say of held-out users or items that training does not have."""
        if not rows.any():
            return []
        column = raw.items if role == "item" else raw.users
        names = dict.fromkeys(column[n] for n in np.flatnonzero(rows).tolist())
        rows_of = counted(int(rows.sum()), "held-out row")
        what = f"{rows_of} of {role}s that training does not have"
        return [f"{what} ({listed([*names])}): {COLD[role]}"]

    def model(self) -> nn.Module:
        return self.method.model()

    def _held_out(self, split: str) -> HeldOut:
        assert self.samples is not None
        together = min(TOGETHER, self.settings.max_length)
        return HeldOut(self.samples, self.found, self.histories, split, together)

    def _sequences(self) -> Sequences:
        assert self.samples is not None
        return Sequences(self.found, self.samples.rows("train"), self.settings.max_length)

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        assert self.samples is not None
        if split != "train":
            return self.method.question_lengths(self.held_out(split).counts())
        if isinstance(self.method, SasRec):
            return self.sequences().lengths
        return self.method.lengths(len(self.samples.rows("train")))

    def where(self, split: str, row: int) -> str:
        assert self.samples is not None
        if split == "train" and isinstance(self.method, SasRec):
            return f"history {row + 1} of the train split"
        numbers = self.samples.rows(split) if split == "train" else self.held_out(split).numbers
        return str(self.samples[int(numbers[row])]["where"])

    @property
    def padded(self) -> bool:
        return False

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> Any:
        assert self.samples is not None
        if split != "train":
            users = list(self.held_out(split).questions(rows))
            return QuestionBatch(users, torch.device("cpu"))
        if isinstance(self.method, SasRec):
            return self.sequences().take(rows)
        numbers = self.samples.rows("train")[rows]
        return self.method.batch(self.found, numbers, self.config.seed, epoch)

    def forward(self, model: nn.Module, batch: Any, *, noise: Noise | None = None) -> Any:
        """The scores of items, with the norms to keep small where there is a penalty."""
        return self.method.forward(model, batch, noise)

    def loss(self, output: Any, batch: Any) -> Loss:
        return self.method.loss(output, batch)

    def divergence(self, a: Any, b: Any, batch: Any) -> Loss:
        return self.method.divergence(a, b, batch)

    def answers(self, model: nn.Module, batches: Iterable[QuestionBatch]) -> Recommended:
        """What the model recommends in the rows of these batches, in the order of the rows."""
        columns, lists = [], []
        for batch in batches:
            items, ratings = batch.column("items").long(), batch.column("ratings")
            scores = self.method.scores(model, batch).float()
            ranks, best = ranked(scores, batch.seen(scores.shape[1]), items)
            owners = torch.tensor([one.owner for one in batch.users for _ in range(len(one))])
            predicted = torch.full_like(ratings, torch.nan)
            if self.explicit:
                predicted = self.rated(model, batch, scores, items)
            kinds = (batch.column("rows"), owners.to(ranks.device), ratings, predicted, ranks)
            columns.append(torch.stack([x.double() for x in kinds], dim=1))
            lists.append(best)
        liked = self.settings.liked if self.explicit else None
        size = len(self.names.items)
        return Recommended.gather(torch.cat(columns), torch.cat(lists), items=size, liked=liked)

    def rated(self, model: nn.Module, batch: QuestionBatch, scores: Any, items: Any) -> Any:
        """The predicted rating of each item, within the scale."""
        assert isinstance(self.method, Factors)
        known = scores.gather(1, items.clamp(min=0)[:, None])[:, 0]
        found = torch.where(items < 0, self.method.unseen(model, batch), known)
        return found.clamp(self.settings.lowest, self.settings.highest)

    def score(self, model: nn.Module, batches: Iterable[QuestionBatch]) -> dict[str, float]:
        return self.answers(model, batches).values()


COLD = {
    "item": "they cannot be recommended, and count as missed",
    "user": "half of the rows of each were read to predict the others",
}


def with_feedback(settings: RecommendConfig, raw: RawRows) -> RecommendConfig:
    """The settings, with the kind of feedback that the rows have unless it is set."""
    if settings.feedback != "auto":
        return settings
    rated = settings.method == "factors" and len({*raw.ratings}) > 1 and None not in raw.ratings
    return replace(settings, feedback="explicit" if rated else "implicit")


def refuse_untimed(settings: RecommendConfig, raw: RawRows) -> None:
    """Refuse rows without times for a method that reads them in order."""
    if settings.method == "sasrec" and raw.times is None:
        raise GlassformerError(
            f"task.method = sasrec reads the items of a user in order, but not all rows have a "
            f"time; {UNTIMED}"
        )


def refuse_few(names: Names) -> None:
    """Refuse rows that leave nothing to choose from."""
    for noun, known in (("user", names.users), ("item", names.items)):
        if len(known) < 2:
            raise GlassformerError(
                f"the training rows have only one {noun}, {known.names[0]!r}; give rows of "
                f"several, or name the column with --columns {noun}=..."
            )


def scaled(
    settings: RecommendConfig, ratings: np.ndarray
) -> tuple[RecommendConfig, dict[str, float]]:
    """The settings with the scale of the ratings, and their mean and deviation."""
    if settings.feedback != "explicit":
        return settings, {"mean": 0.0, "deviation": 1.0}
    low, high = (
        float(end if given is None else given)
        for given, end in ((settings.lowest, ratings.min()), (settings.highest, ratings.max()))
    )
    mean = float(ratings.mean(dtype=np.float64))
    liked = round(mean, 3) if settings.liked is None else settings.liked
    found = replace(settings, lowest=low, highest=high, liked=liked)
    return found, {"mean": mean, "deviation": float(ratings.std(dtype=np.float64))}


def fitted(model: ModelConfig, settings: RecommendConfig) -> ModelConfig:
    """The model, as deep and wide as what is built, with positions for all that is read."""
    writes = model.decoder
    if writes is None or writes.kind != "attention":
        raise GlassformerError(
            "task.method = sasrec needs a decoder of attention; set model.decoder=transformer"
        )
    if settings.method == "factors":
        return replace(model, decoder=replace(writes, dim=settings.features, depth=1))
    longest = max(writes.max_length, settings.max_length)
    return replace(model, decoder=replace(writes, max_length=longest))
