"""What each user took, kept in the folder of the run: it is not recommended again."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.ragged import Ragged
from glassformer.data.samples import SPLITS
from glassformer.errors import GlassformerError
from glassformer.tasks.recommend.interactions import Interactions

FILES = ("items", "ratings", "splits")


@dataclass(frozen=True, slots=True)
class History:
    """The items of a user in order, and their ratings, NaN where there are none."""

    items: Int[np.ndarray, " _"]
    ratings: Float[np.ndarray, " _"]

    def then(self, items: Int[np.ndarray, " _"], ratings: Float[np.ndarray, " _"]) -> "History":
        """The same, continued; items that training did not have are left out."""
        known = items >= 0
        return History(
            np.concatenate([self.items, items[known]]),
            np.concatenate([self.ratings, ratings[known]]),
        )


NOTHING = History(np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32))


class Histories:
    """The histories of all users, with the split of each row."""

    def __init__(self, items: Ragged, ratings: Ragged, splits: Ragged) -> None:
        self.items, self.ratings, self.splits = items, ratings, splits

    @staticmethod
    def write(
        folder: Path, found: Interactions, splits: Int[np.ndarray, " rows"], users: int
    ) -> None:
        """Store those of the users that training has."""
        chosen = np.flatnonzero((splits < len(SPLITS)) & (found.users < users) & (found.items >= 0))
        rows = found.sorted_rows(chosen)
        ends = np.searchsorted(found.users[rows], np.arange(users), side="right")
        values = (found.items[rows], found.ratings[rows], splits[rows].astype(np.uint8))
        for name, value in zip(FILES, values, strict=True):
            Ragged.write(folder / f"history.{name}", np.split(value, ends[:-1]), value.dtype)

    @classmethod
    def open(cls, folder: Path, users: int, items: int) -> "Histories":
        """What `write` stored."""
        found = [
            Ragged.open(folder / f"history.{name}", below=below)
            for name, below in zip(FILES, (items, None, len(SPLITS)), strict=True)
        ]
        if any(len(one.ends) != users or len(one.values) != len(found[0].values) for one in found):
            raise GlassformerError(
                f"{folder}: its histories do not match its users; copy the run again"
            )
        return cls(*found)

    def __len__(self) -> int:
        return len(self.items.ends)

    @property
    def sizes(self) -> Int[np.ndarray, " users"]:
        """How much each user took."""
        return self.items.lengths

    def item_counts(self, items: int) -> Int[np.ndarray, " I"]:
        """How often each item was taken."""
        return np.bincount(np.asarray(self.items.values), minlength=items)

    def of(self, user: int, before: str | None = None) -> History:
        """What a user took.

        Args:
            before: Only what is in the splits before this one.
        """
        items, ratings = np.asarray(self.items[user]), np.asarray(self.ratings[user])
        if before is None:
            return History(items, ratings)
        kept = np.asarray(self.splits[user]) < SPLITS.index(before)
        return History(items[kept], ratings[kept])
