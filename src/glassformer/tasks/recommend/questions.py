"""Held-out rows as questions: which item comes next, and how is it rated?

Each row is asked with what is known before it: the training rows of its user, for a test row also
the validation rows, and, where rows have times, the earlier ones of its own split. Rows of one user
that are asked together share one history.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.data.samples import Samples
from glassformer.tasks.recommend.histories import NOTHING, Histories, History
from glassformer.tasks.recommend.interactions import Interactions
from glassformer.tasks.recommend.names import UNKNOWN


@dataclass(frozen=True, slots=True)
class Questions:
    """Consecutive rows of one user.

    Attributes:
        owner: The number of the user.
        known: Whether training had that user.
        history: What is known before the first row.
        items: The right answers; UNKNOWN for items that training did not have.
        rows: The numbers of the rows in their split.
        timed: Whether each row is known when the next one is asked.
    """

    owner: int
    known: bool
    history: History
    items: Int[np.ndarray, " _"]
    ratings: Float[np.ndarray, " _"]
    rows: Int[np.ndarray, " _"]
    timed: bool

    @classmethod
    def next_item(cls, user: int, history: History) -> "Questions":
        """One question without an answer; the user may be UNKNOWN."""
        row, rating = np.zeros(1, dtype=np.int64), np.full(1, np.nan, dtype=np.float32)
        return cls(user, user != UNKNOWN, history, np.full(1, UNKNOWN), rating, row, False)

    def __len__(self) -> int:
        return len(self.rows)

    def seen(self, question: int) -> Int[np.ndarray, " _"]:
        """The items that are not asked for any more, but for the answer itself."""
        found = self.history.items
        if self.timed:
            earlier = self.items[:question]
            found = np.concatenate([found, earlier[earlier >= 0]])
        return found[found != self.items[question]]


@dataclass(frozen=True, slots=True)
class QuestionBatch:
    """The questions of some users."""

    users: Sequence[Questions]
    device: torch.device

    @property
    def tokens(self) -> int:
        """How many questions there are."""
        return sum(map(len, self.users))

    def to(self, device: torch.device) -> "QuestionBatch":
        """The same for another device."""
        return QuestionBatch(self.users, device)

    def column(self, name: str) -> Tensor:
        """One value of all questions, end to end: items, ratings or rows."""
        values = np.concatenate([getattr(one, name) for one in self.users])
        return torch.from_numpy(values).to(self.device)

    def seen(self, items: int) -> Bool[Tensor, "Q I"]:
        """Which items may not be recommended."""
        lists = [one.seen(n) for one in self.users for n in range(len(one))]
        question = np.repeat(np.arange(len(lists)), [len(one) for one in lists])
        mask = torch.zeros(len(lists), items, dtype=torch.bool)
        mask[torch.from_numpy(question), torch.from_numpy(np.concatenate(lists)).long()] = True
        return mask.to(self.device)


class HeldOut:
    """The rows of a held-out split, by user, as questions.

    Attributes:
        numbers: The number of the sample of each row.

    Args:
        together: The most rows of a user that share one history.
    """

    def __init__(
        self, samples: Samples, found: Interactions, histories: Histories, split: str, together: int
    ) -> None:
        self.found, self.histories, self.split, self.together = found, histories, split, together
        self.known = users = len(histories)
        rows = found.sorted_rows(samples.rows(split))
        asked = found.asked(rows, users)
        self.numbers, self.given = rows[asked], rows[~asked]

    def counts(self) -> Int[np.ndarray, " rows"]:
        """How many items are known of the user of each row, on average of those asked together."""
        owners = self.found.users[self.numbers]
        sizes = self.histories.sizes
        before = np.where(owners < self.known, sizes[np.minimum(owners, self.known - 1)], 0)
        return before // self.together

    def questions(self, rows: Int[np.ndarray, " chosen"]) -> Iterator[Questions]:
        """Some of the rows; those of a user that follow one another are asked together."""
        rows = np.sort(rows)
        owners = self.found.users[self.numbers[rows]]
        apart = (np.diff(owners) != 0) | (np.diff(rows) != 1)
        cuts = [0, *(np.flatnonzero(apart) + 1).tolist(), len(rows)]
        for start, end in pairwise(cuts):
            for first in range(start, end, self.together):
                last = min(end, first + self.together)
                yield self._of_user(int(owners[start]), rows[first:last])

    def _of_user(self, user: int, rows: Int[np.ndarray, " _"]) -> Questions:
        found, numbers = self.found, self.numbers[rows]
        first = np.searchsorted(self.found.users[self.numbers], user)
        before = self.numbers[first : rows[0]] if found.timed else self.numbers[:0]
        if user < self.known:
            history = self.histories.of(user, before=self.split)
        else:
            given = self.given[found.users[self.given] == user]
            history = NOTHING.then(found.items[given], found.ratings[given])
        history = history.then(found.items[before], found.ratings[before])
        return Questions(
            owner=user,
            known=user < self.known,
            history=history,
            items=found.items[numbers],
            ratings=found.ratings[numbers],
            rows=rows,
            timed=found.timed,
        )
