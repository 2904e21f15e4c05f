"""What the doctor looks for in ratings: repeated pairs, rare users and items, stray ratings.

What training refuses is an error: a single user or item, and values that the settings need.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from glassformer.data.doctor.check import Check, Figures, Finding, Specimen
from glassformer.data.samples import SPLITS
from glassformer.data.splits import hashed
from glassformer.wording import counted

RARE = 5  # rows of a user or an item; from fewer, little can be learned
UNRATED = "add a column of ratings, or train with --set task.feedback=implicit"
UNTIMED = "add a column of times, or use task.method=factors"
STRAY = 0.01  # of the rows; ratings of more are no slip
ODD, BESIDE = 0.001, 0.05  # of all ratings and of the next ones; ends of a scale are not as rare
FEW_STEPS = 21  # different ratings, on a scale of steps


class RepeatedPairs(Check):
    """Several rows of one user and item: the last one on the scale counts."""

    def __init__(self, lowest: float | None = None, highest: float | None = None) -> None:
        self.lowest, self.highest = lowest, highest
        self.last: dict[int, tuple[float, int]] = {}  # by content: time, row
        self.ratings: dict[int, float | None] = {}
        self.repeated: list[int] = []
        self.changed = 0
        self.drop: list[int] = []

    def see(self, row: Specimen) -> None:
        time, rating = row.sample.get("time") or 0.0, row.sample.get("rating")
        if rating is not None and not in_scale(rating, self.lowest, self.highest):
            return  # left out for its rating, so that it replaces no other
        if row.content not in self.last:
            self.last[row.content], self.ratings[row.content] = (time, row.number), rating
            return
        self.repeated.append(row.number)
        self.changed += rating != self.ratings[row.content]
        before, now = self.last[row.content], (time, row.number)
        self.drop.append(min(before, now)[1])
        self.last[row.content] = max(before, now)

    def findings(self) -> Iterator[Finding]:
        if self.repeated:
            other = f", {self.changed:,} with another rating" if self.changed else ""
            what = f"{counted(len(self.repeated), 'row')} with an earlier pair of user and item"
            advice = "the last row of each pair counts; --fix keeps only that"
            yield Finding("repeated pairs", "warning", what + other, advice, self.repeated)

    def to_drop(self) -> Mapping[int, str]:
        return dict.fromkeys(self.drop, "replaced by a later row")


class ColdNames(Check):
    """Users and items with few rows, and held-out ones that training does not have."""

    def __init__(self) -> None:
        self.rows: dict[str, Counter[int]] = {"user": Counter(), "item": Counter()}
        self.trained: dict[str, set[int]] = defaultdict(set)
        self.held_out: dict[str, list[tuple[int, int]]] = defaultdict(list)

    def see(self, row: Specimen) -> None:
        for role, counts in self.rows.items():
            name = hashed(str(row.sample[role]))
            counts[name] += 1
            if row.split == SPLITS[0]:
                self.trained[role].add(name)
            else:
                self.held_out[role].append((row.number, name))

    def findings(self) -> Iterator[Finding]:
        for role, counts in self.rows.items():
            if len(self.trained[role]) == 1:
                what = f"the training rows have only one {role}"
                advice = f"give rows of several, or name the column with --columns {role}=..."
                yield Finding(f"one {role}", "error", what, advice, total=counts.total())
                continue
            rare = sum(count < RARE for count in counts.values())
            if rare:
                share = rare / len(counts)
                what = f"{counted(rare, role)} ({share:.1%}) with fewer than {RARE} rows"
                advice = f"what is predicted for them is close to the mean {role}"
                severity = "warning" if share > 0.5 else "note"
                yield Finding(f"rare {role}s", severity, what, advice, total=rare)
            cold = [
                number for number, name in self.held_out[role] if name not in self.trained[role]
            ]
            if cold and self.trained[role]:
                what = (
                    f"{counted(len(cold), 'held-out row')} of {role}s that training does not have"
                )
                yield Finding(f"cold {role}s", "warning", what, COLD[role], cold)

    def figures(self) -> Figures:
        users, items = (len(self.rows[role]) for role in ("user", "item"))
        rows = self.rows["user"].total()
        if not rows:
            return {}
        share = round(rows / (users * items), 4)
        return {"Interactions": {"users": users, "items": items, "share of all pairs": share}}


COLD = {
    "user": "half of the rows of each are read to predict the others",
    "item": "they cannot be recommended; train on some rows of them",
}


class NeededValue(Check):
    """Rows without a rating or a time, where the settings need one.

    Args:
        role: The rating or the time.
        advice: What to do.
    """

    def __init__(self, role: str, advice: str) -> None:
        self.role, self.advice = role, advice
        self.numbers: list[int] = []

    def see(self, row: Specimen) -> None:
        if row.sample.get(self.role) is None:
            self.numbers.append(row.number)

    def findings(self) -> Iterator[Finding]:
        if self.numbers:
            what = f"{counted(len(self.numbers), 'row')} without a {self.role}"
            yield Finding(f"no {self.role}", "error", what, self.advice, self.numbers)


class RatingScale(Check):
    """Ratings outside the scale, or far from all others."""

    def __init__(self, lowest: float | None, highest: float | None) -> None:
        self.lowest, self.highest = lowest, highest
        self.rows: defaultdict[float, list[int]] = defaultdict(list)

    def see(self, row: Specimen) -> None:
        if "rating" in row.sample:
            self.rows[row.sample["rating"]].append(row.number)

    def findings(self) -> Iterator[Finding]:
        outside, stray = self._outside(), self._stray()
        if outside:
            what = f"{counted(len(outside), 'rating')} {self._beyond}"
            advice = "training leaves them out; correct them, or drop them with --fix"
            yield Finding("ratings out of range", "warning", what, advice, outside)
        if stray:
            values = ", ".join(f"{value:g}" for value in stray)
            numbers = [number for value in stray for number in self.rows[value]]
            what = f"{counted(len(numbers), 'rating')} far from all others: {values}"
            advice = "set task.lowest and task.highest to the scale, which leaves them out"
            yield Finding("stray ratings", "warning", what, advice, numbers)

        odd = [] if stray or outside else odd_ratings(self._counts())
        if odd:
            values = ", ".join(f"{value:g}" for value in odd)
            numbers = [number for value in odd for number in self.rows[value]]
            what = f"{counted(len(numbers), 'rating')} of {values}, next to the scale of the others"
            zero = " (0 often stands for: not rated)" if 0.0 in odd else ""
            advice = f"is it on the scale{zero}? if not, set task.lowest and task.highest"
            yield Finding("odd ratings", "note", what, advice, numbers)

    def figures(self) -> Figures:
        if not 1 < len(self.rows) <= FEW_STEPS:
            return {}
        return {"Ratings": {f"{value:g}": len(self.rows[value]) for value in sorted(self.rows)}}

    def to_drop(self) -> Mapping[int, str]:
        return dict.fromkeys(self._outside(), "a rating out of range")

    @property
    def _beyond(self) -> str:
        """Where a rating outside the scale is."""
        if self.lowest is None:
            return f"above {self.highest:g}"
        if self.highest is None:
            return f"below {self.lowest:g}"
        return f"outside the scale from {self.lowest:g} to {self.highest:g}"

    def _outside(self) -> list[int]:
        return sorted(
            number
            for value, numbers in self.rows.items()
            if not in_scale(value, self.lowest, self.highest)
            for number in numbers
        )

    def _stray(self) -> list[float]:
        if self.lowest is not None or self.highest is not None:
            return []
        return stray_ratings(self._counts())

    def _counts(self) -> dict[float, int]:
        return {value: len(numbers) for value, numbers in self.rows.items()}


def stray_ratings(counts: Mapping[float, int]) -> list[float]:
    """The rare extreme ratings that would more than double the scale of the others.

    >>> stray_ratings({1.0: 60, 2.0: 70, 4.0: 70, 5.0: 80, 50.0: 1})
    [50.0]
    """
    values, total = sorted(counts), sum(counts.values())
    stray: list[float] = []
    while len(values) > 2:
        width = values[-1] - values[0]
        for end, others in ((values[0], values[1:]), (values[-1], values[:-1])):
            if counts[end] <= STRAY * total and width > 2 * (others[-1] - others[0]):
                stray.append(end)
                values = others
                break
        else:
            break
    return sorted(stray)


def odd_ratings(counts: Mapping[float, int]) -> list[float]:
    """The ends of a scale of steps that hardly anybody uses, as if they were not part of it.

    >>> odd_ratings({0.0: 2, 0.5: 1_400, 1.0: 2_800, 2.5: 5_500, 5.0: 13_000})
    [0.0]
    >>> odd_ratings({1.0: 40, 2.0: 60, 5.0: 1_300})
    []
    """
    values, total = sorted(counts), sum(counts.values())
    if not 2 < len(values) <= FEW_STEPS:
        return []
    ends = ((values[0], values[1]), (values[-1], values[-2]))
    return [end for end, inner in ends if counts[end] <= min(ODD * total, BESIDE * counts[inner])]


def in_scale(rating: float, lowest: float | None, highest: float | None) -> bool:
    """Whether a rating is on the scale, as far as that has ends.

    >>> in_scale(6.0, 1.0, 5.0), in_scale(6.0, 1.0, None)
    (False, True)
    """
    return (lowest is None or lowest <= rating) and (highest is None or rating <= highest)
