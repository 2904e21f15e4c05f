"""Who took what, how it was rated, and when: the samples of a run as numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from glassformer.data.arrays import map_array, map_numbers
from glassformer.data.samples import NO_SPLIT, Samples
from glassformer.errors import GlassformerError
from glassformer.tasks.recommend.checks import UNRATED, in_scale, stray_ratings
from glassformer.tasks.recommend.names import UNKNOWN, Names
from glassformer.tasks.recommend.settings import RecommendConfig
from glassformer.wording import counted


@dataclass(frozen=True, slots=True)
class RawRows:
    """The values of all samples, in their order.

    Attributes:
        times: In seconds; None if a sample has none.
        captions: What the items are called, by item, as far as the rows say.
    """

    users: Sequence[str]
    items: Sequence[str]
    ratings: Sequence[float | None]
    times: Float[np.ndarray, " rows"] | None
    captions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, samples: Samples) -> "RawRows":
        """The values of some samples."""
        users, items, ratings, times = list[str](), list[str](), [], []
        captions: dict[str, str] = {}
        for sample in samples:
            users.append(sample["user"])
            items.append(sample["item"])
            ratings.append(sample.get("rating"))
            times.append(sample.get("time"))
            if sample.get("caption"):
                captions.setdefault(sample["item"], sample["caption"])
        timed = None not in times
        found = np.array(times, dtype=np.float64) if timed else None
        return cls(users, items, ratings, found, captions)

    @property
    def order(self) -> Float[np.ndarray, " rows"]:
        """What rows of a user are sorted by: their times, or where they stand."""
        return np.arange(len(self.users), dtype=np.float64) if self.times is None else self.times

    def usable(
        self, samples: Samples, settings: RecommendConfig
    ) -> tuple[UInt8[np.ndarray, " rows"], list[str]]:
        """The splits of the samples without those that are left out, and what to say of these."""
        splits, remarks = samples.splits.copy(), []
        if settings.feedback == "explicit":
            self._refuse_unrated(samples)
            low, high = settings.lowest, settings.highest
            outside = [
                n for n, one in enumerate(self.ratings) if not in_scale(float(one or 0), low, high)
            ]
            splits[outside] = NO_SPLIT
            if outside:
                scale = f"from {low:g} to {high:g}" if None not in (low, high) else "given"
                remarks.append(
                    f"Left out: {counted(len(outside), 'rating')} outside the scale {scale}, "
                    f"first {samples[outside[0]]['where']}"
                )
            remarks += self._stray(splits)
        repeated = self._replaced(splits)
        splits[repeated] = NO_SPLIT
        if repeated:
            remarks.append(
                f"Left out: {counted(len(repeated), 'row')} with a later row of the same user and "
                f"item, first {samples[min(repeated)]['where']}"
            )
        return splits, remarks

    def _refuse_unrated(self, samples: Samples) -> None:
        for row, rating in enumerate(self.ratings):
            if rating is None:
                raise GlassformerError(
                    f"{samples[row]['where']}: has no rating, but ratings are to be predicted; "
                    f"{UNRATED}"
                )

    def _stray(self, splits: UInt8[np.ndarray, " rows"]) -> list[str]:
        """What to say of ratings that are far from all others."""
        counts = Counter(
            rating
            for rating, split in zip(self.ratings, splits, strict=True)
            if split != NO_SPLIT and rating is not None
        )
        stray = stray_ratings(counts)
        if not stray:
            return []
        values = ", ".join(f"{value:g}" for value in stray)
        number = counted(sum(counts[value] for value in stray), "rating")
        return [
            f"{number} far from all others: {values}; if that is a slip, give the scale with "
            f"task.lowest and task.highest, which leaves such rows out"
        ]

    def _replaced(self, splits: UInt8[np.ndarray, " rows"]) -> list[int]:
        """The rows that a later one of the same user, item and split replaces."""
        order, last, found = self.order, dict[tuple[str, str, int], int](), list[int]()
        for row, (user, item, split) in enumerate(zip(self.users, self.items, splits, strict=True)):
            if split == NO_SPLIT:
                continue
            key = (user, item, int(split))
            before = last.get(key)
            if before is None or order[row] >= order[before]:
                last[key] = row
                found += [] if before is None else [before]
            else:
                found.append(row)
        return found

    def numbers(self, names: Names) -> "Interactions":
        """Users and items as numbers; users that are not in `names` get higher ones."""
        known, others = names.users.numbers, dict[str, int]()
        users = [
            known[name] if name in known else others.setdefault(name, len(known) + len(others))
            for name in self.users
        ]
        items = [names.items.numbers.get(name, UNKNOWN) for name in self.items]
        ratings = [np.nan if one is None else one for one in self.ratings]
        return Interactions(
            np.array(users, dtype=np.int32),
            np.array(items, dtype=np.int32),
            np.array(ratings, dtype=np.float32),
            self.order,
            self.times is not None,
        )


@dataclass(frozen=True, slots=True)
class Interactions:
    """The samples of a run as numbers.

    Attributes:
        users: Those that training did not have are numbered after the others.
        items: UNKNOWN for those that training did not have.
        ratings: NaN where there are none.
        order: What the rows of a user are sorted by.
        timed: Whether that is their time.
    """

    users: Int[np.ndarray, " rows"]
    items: Int[np.ndarray, " rows"]
    ratings: Float[np.ndarray, " rows"]
    order: Float[np.ndarray, " rows"]
    timed: bool

    def save(self, data: Path) -> None:
        """Write them beside the samples."""
        np.save(data / "pairs.npy", np.stack([self.users, self.items + 1]), allow_pickle=False)
        np.save(data / "ratings.npy", self.ratings, allow_pickle=False)
        order = self.order if self.timed else self.order[:0]
        np.save(data / "times.npy", order, allow_pickle=False)

    @classmethod
    def open(cls, data: Path, rows: int, items: int) -> "Interactions":
        """What `save` wrote."""
        pairs = map_numbers(data / "pairs.npy", (2, rows), below=2**31)
        ratings, times = (map_array(data / name) for name in ("ratings.npy", "times.npy"))
        timed = len(times) == rows and rows > 0
        order = times if timed else np.arange(rows, dtype=np.float64)
        if len(ratings) != rows or pairs[1].max(initial=0) > items:
            raise GlassformerError(f"{data}: its files do not match; copy the run again")
        return cls(pairs[0], pairs[1] - 1, ratings, order, timed)

    def sorted_rows(self, rows: Int[np.ndarray, " chosen"]) -> Int[np.ndarray, " chosen"]:
        """Some rows by user, and each user's in order."""
        return rows[np.lexsort((self.order[rows], self.users[rows]))]

    def asked(self, rows: Int[np.ndarray, " chosen"], users: int) -> Bool[np.ndarray, " chosen"]:
        """Which of some sorted held-out rows are to be predicted.

        Of a user that training did not have, the first half is given.

        Args:
            users: How many training had.
        """
        owners = self.users[rows]
        _, begins, counts = np.unique(owners, return_index=True, return_counts=True)
        place = np.arange(len(rows)) - np.repeat(begins, counts)
        return (owners < users) | (place >= np.repeat(counts // 2, counts))
