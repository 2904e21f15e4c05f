"""The data of `recommend`: a user, an item, and a rating, a time, or both."""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.columns import COLUMN_NAMES, Columns, Role, find_by_name
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import EmptyRows, SharedGroups
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.data.schema import Schema
from glassformer.tasks.recommend.checks import (
    UNRATED,
    UNTIMED,
    ColdNames,
    NeededValue,
    RatingScale,
    RepeatedPairs,
)

USER = Role(
    name="user",
    names=("user", "user_id", "uid", "userid", "reviewer", "reviewer_id", "customer", "用户"),
)
ITEM = Role(
    name="item",
    names=(
        *("item", "item_id", "movie", "movie_id", "film", "title", "product", "product_id"),
        *("book", "book_id", "isbn", "song", "track", "artist", "asin", "business_id", "物品"),
    ),
)
RATING = Role(
    name="rating",
    names=("rating", "stars", "score", "overall", "book_rating", "评分"),
    required=False,
    answer=True,
)
TIME = Role(
    name="time",
    names=("time", "timestamp", "date", "datetime", "unix_review_time", "时间"),
    required=False,
)
CAPTION = Role(
    name="caption",
    names=("caption", "title", "item_title", "movie_title", "item_name", "product_name", "name"),
    required=False,
)


class RecommendSchema(Schema):
    """Who took which item, how it was rated, and when; and what people call the item."""

    roles = (USER, ITEM, RATING, TIME, CAPTION)

    @property
    def noun(self) -> str:
        return "pair of user and item"

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """A column of users, one of items, and ratings or times, but none of texts."""
        head = list(islice(rows, 1))
        columns = list(head[0].values) if head else []
        found = find_by_name(columns, self.roles)
        others = [column for column in columns if column not in found.values()]
        texts = find_by_name(others, [Role(name="text", names=COLUMN_NAMES["text"])])
        return {"user", "item"} <= {*found} and bool({"rating", "time"} & {*found}) and not texts

    def find_columns(self, head: Sequence[Row], given: Mapping[str, str], *more: Role) -> Columns:
        """As usual; the column of users may also be the group, so that whole users are held out."""
        group = given.get("group", "")
        if given.get("user") != group and not find_by_name([group], [USER]):
            return self._with_caption(head, given, super().find_columns(head, given, *more))
        own = {role: column for role, column in given.items() if role != "group"}
        roles = [role for role in more if role.name != "group"]
        found = super().find_columns(head, {"user": group, **own}, *roles)
        return self._with_caption(head, given, found) | {"group": group}

    def _with_caption(
        self, head: Sequence[Row], given: Mapping[str, str], found: Columns
    ) -> Columns:
        """The columns, without a guessed caption that goes with users, or not with items."""
        caption = found.get("caption")
        if caption is None or "caption" in given:
            return found
        if goes_with(head, found["item"], caption) and not goes_with(head, found["user"], caption):
            return found
        return {role: column for role, column in found.items() if role != "caption"}

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        sample, fault = super().sample(row, columns)
        for role, parse in (("rating", number_of), ("time", time_of)):
            if not fault and role in sample:
                value = parse(sample[role])
                fault = "" if value is not None else FAULTS[role]
                sample[role] = value
        return sample, fault

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        value = super().value(role, row, columns)
        return value.strip() if isinstance(value, str) else value

    def content(self, sample: Sample, config: DataConfig) -> str:
        return f"{sample['user']}\n{sample['item']}"

    def stratum(self, sample: Sample) -> str:
        """Every split gets its share of the rows of each user."""
        return str(sample["user"])

    def time(self, sample: Sample) -> float | None:
        return sample.get("time")

    def checks(self, config: Config) -> list[Check]:
        task = config.task
        return [
            *(EmptyRows(), SharedGroups(), RepeatedPairs(task.lowest, task.highest), ColdNames()),
            *([RatingScale(task.lowest, task.highest)] if task.feedback != "implicit" else ()),
            *([NeededValue("rating", UNRATED)] if task.feedback == "explicit" else ()),
            *([NeededValue("time", UNTIMED)] if task.method == "sasrec" else ()),
        ]


def goes_with(head: Sequence[Row], column: str, other: str) -> bool:
    """Whether rows with the same value in a column have the same in another."""
    values: dict[str, set[str]] = {}
    for row in head:
        values.setdefault(str(row[column]), set()).add(str(row[other]))
    return all(len(some) == 1 for some in values.values())


FAULTS = {
    "rating": "a rating that is not a number",
    "time": "a time that is neither a number nor a date such as 2024-05-31 18:30",
}


def number_of(text: Any) -> float | None:
    """A finite number, or None.

    >>> number_of("4.5"), number_of("four"), number_of("nan")
    (4.5, None, None)
    """
    try:
        found = float(text)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def time_of(text: Any) -> float | None:
    """Seconds, from a number or a date; None if it is neither.

    >>> time_of("1000"), time_of("1970-01-02"), time_of("yesterday")
    (1000.0, 86400.0, None)
    """
    if (found := number_of(text)) is not None:
        return found
    try:
        date = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
