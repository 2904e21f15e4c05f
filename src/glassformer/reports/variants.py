"""Variants of a run, side by side: their scores, the differences, what they cost, and a verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from glassformer import notebook
from glassformer.files import plain
from glassformer.metrics.intervals import Score
from glassformer.metrics.styles import style_of
from glassformer.reports.wording import difference, interval, named, p_value, written
from glassformer.terminal import aligned, printable

CHANCE = 0.05  # differences with a larger p-value are ties
CELLS = 25  # characters of a drawn interval
UNITS = ("", "K", "M", "G", "T")
BEST, TIE, WORSE, UNKNOWN = "best", "tie", "worse", "not tested"

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantResult:
    """One variant, over all its seeds.

    Attributes:
        settings: What it sets, as key=value.
        scores: Means over the seeds, with intervals over seeds and rows.
        by_seed: The goal of each seed.
        difference: Of the goal from the best variant's; None for the best.
        p_value: Of that difference, corrected for the number of variants.
        steps: The mean number of steps.
        tokens_per_second: In training. Like all that follows, the mean over the seeds.
        rows_per_second: When answering.
        bytes: The peak of memory in training.
        curve: The goal on the validation rows, by step.
        lengths: The goal by times the length of training; None where it cannot read so far.
        longer: The goal on other rows, by their name.
    """

    name: str
    settings: Sequence[str]
    scores: Mapping[str, Score]
    by_seed: Sequence[float]
    difference: Score | None
    p_value: float | None
    parameters: int
    steps: int
    tokens_per_second: float | None
    rows_per_second: float
    bytes: int | None
    curve: Sequence[Point] = ()
    lengths: Mapping[int, Score | None] = field(default_factory=dict)
    longer: Mapping[str, Score] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """Whether it is the best, tied with the best, or worse, if that can be tested."""
        if self.difference is None:
            return BEST
        if self.p_value is None:
            return UNKNOWN
        return TIE if self.p_value > CHANCE else WORSE

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        values["scores"] = {name: score.as_values() for name, score in self.scores.items()}
        values["difference"] = self.difference and self.difference.as_values()
        values["lengths"] = {
            times: score and score.as_values() for times, score in self.lengths.items()
        }
        values["longer"] = {name: score.as_values() for name, score in self.longer.items()}
        return values | {"verdict": self.verdict}


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantComparison:
    """Variants of a run, trained under the same budget with several seeds. Shows itself.

    Attributes:
        title: What is compared, and on which data.
        varied: The settings that differ.
        goal: The score that decides.
        facts: Budget, seeds, rows, machine, command and folder, in display order.
        variants: In the order given.
        notes: What else there is to know about the numbers.
    """

    title: str
    varied: Sequence[str]
    goal: str
    facts: Mapping[str, str | int]
    variants: Sequence[VariantResult]
    notes: Sequence[str] = ()

    @property
    def best(self) -> VariantResult:
        """The variant with the best mean score."""
        return next(one for one in self.variants if one.verdict == BEST)

    def verdict(self) -> str:
        """Which variant is best, which are tied with it, and which are worse, in a sentence."""
        best, others = self.best, [one for one in self.variants if one.verdict != BEST]
        ties = [one.name for one in others if one.verdict == TIE]
        worse = [one.name for one in others if one.verdict == WORSE]
        score = f"{named(self.goal)} {written(self.goal, best.scores[self.goal].value)}"
        untested = [one for one in others if one.verdict == UNKNOWN]
        if untested:
            reason = untested[0].difference.reason if untested[0].difference else ""
            return f"{best.name} has the best mean, {score}; differences are not tested: {reason}."
        if not worse:
            together = "both" if len(ties) == 1 else f"all {len(self.variants)}"
            return (
                f"No significant difference: {together} are tied; {best.name} has the best mean, "
                f"{score}."
            )
        tied = f"; tied with it: {', '.join(ties)}" if ties else "; no other is tied with it"
        return f"{best.name} is best, {score}{tied}; worse: {', '.join(worse)}."

    def header(self) -> list[str]:
        """The columns of `rows`."""
        return [
            ", ".join(self.varied),
            named(self.goal),
            "difference from the best",
            "p",
            "verdict",
            *(self._others()),
            "parameters",
            *(["steps"] if self._budgets_differ() else []),
            "tokens/s",
            "rows/s",
            "memory",
            *(f"{named(self.goal)}, {name}" for name in self._lengths()),
        ]

    def rows(self) -> list[list[str]]:
        """One row per variant, in words."""
        return [self._row(one) for one in self.variants]

    def drawing(self) -> list[str]:
        """The interval of each variant's score, on a common scale, in characters."""
        found = [one.scores[self.goal] for one in self.variants]
        ends = [end for one in found for end in (one.interval or (one.value,))]
        low, high = min(ends), max(ends)
        return [drawn_interval(one, low, high) for one in found]

    def markdown(self) -> str:
        """As a section of Markdown."""
        facts = [f"- {name}: {_code(name, value)}" for name, value in self.facts.items()]
        table = markdown_table(self.header(), self.rows())
        notes = [f"- {note}" for note in self.notes]
        parts = [f"# {self.title}", "\n".join(facts), table, f"**{self.verdict()}**"]
        return "\n\n".join([*parts, *(["\n".join(notes)] if notes else [])]) + "\n"

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON; NaN becomes None."""
        return plain(
            {
                "title": self.title,
                "varied": self.varied,
                "goal": self.goal,
                "facts": self.facts,
                "variants": [one.as_values() for one in self.variants],
                "best": self.best.name,
                "verdict": self.verdict(),
                "notes": self.notes,
            }
        )

    def __repr__(self) -> str:
        lines, drawn = [self.header(), *self.rows()], ["", *self.drawing()]
        cells = [[*line[:2], cell, *line[2:]] for line, cell in zip(lines, drawn, strict=True)]
        table = aligned(cells)
        return "\n".join([self.title, table, *map(printable, [self.verdict(), *self.notes])])

    def _repr_html_(self) -> str:
        """The notebook view: the table, the verdict and the notes."""
        table = notebook.table(self.title, self.rows(), self.header())
        return table + notebook.paragraphs([self.verdict(), *self.notes])

    def _row(self, one: VariantResult) -> list[str]:
        goal, gap = self.goal, one.difference
        memory = "–" if one.bytes is None else f"{shortened(one.bytes)}B"
        speed = "–" if one.tokens_per_second is None else shortened(one.tokens_per_second)
        return [
            one.name,
            interval(goal, one.scores[goal].as_values()),
            "" if gap is None else difference(goal, gap),
            "" if gap is None else p_value(one.p_value),
            one.verdict,
            *(interval(name, one.scores[name].as_values()) for name in self._others()),
            f"{one.parameters:,}",
            *([f"{one.steps:,}"] if self._budgets_differ() else []),
            speed,
            shortened(one.rows_per_second),
            memory,
            *(self._at_length(one, name) for name in self._lengths()),
        ]

    def _others(self) -> list[str]:
        """The scores besides the goal that are on its scale."""
        style = style_of(self.goal)
        return [
            name
            for name in self.best.scores
            if name != self.goal and style_of(name).most == style.most
        ][:1]

    def _budgets_differ(self) -> bool:
        return len({one.steps for one in self.variants}) > 1

    def _lengths(self) -> list[str]:
        """The names of longer sequences and other rows."""
        return [
            *(f"{times}× length" for times in self.best.lengths if times != 1),
            *self.best.longer,
        ]

    def _at_length(self, one: VariantResult, name: str) -> str:
        by_length = {f"{times}× length": score for times, score in one.lengths.items()}
        found = by_length.get(name) or one.longer.get(name)
        return "–" if found is None else interval(self.goal, found.as_values())


def _code(name: str, value: object) -> str:
    return f"`{value}`" if name in ("command", "folder") else str(value)


def drawn_interval(score: Score, low: float, high: float) -> str:
    """An interval in characters, on a scale from low to high.

    >>> drawn_interval(Score(0.5, 0.25, 0.75), 0.0, 1.0)
    '      ├─────●─────┤      '
    """
    span = (high - low) or 1.0
    start, end = score.interval or (score.value, score.value)
    left, dot, right = (
        round((CELLS - 1) * (place - low) / span) for place in (start, score.value, end)
    )
    cells = [" "] * CELLS
    if score.interval is None:
        cells[dot] = "●"
        return "".join(cells)
    cells[left : right + 1] = "─" * (right - left + 1)
    cells[left], cells[right], cells[dot] = "├", "┤", "●"
    return "".join(cells)


def shortened(number: int | float) -> str:
    """A number of any size in a few characters.

    >>> shortened(950), shortened(18_587), shortened(589_000_000)
    ('950', '18.6 K', '589 M')
    """
    size, unit = float(number), 0
    while size >= 999.5 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    digits = 0 if size >= 100 or not unit else 1
    return f"{size:.{digits}f} {UNITS[unit]}".strip()


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    r"""A table in Markdown.

    >>> print(markdown_table(["a", "b"], [["1", "x|y"]]))
    | a | b |
    |---|---|
    | 1 | x\|y |
    """
    lines = [header, *rows]
    cells = [" | ".join(printable(cell).replace("|", "\\|") for cell in line) for line in lines]
    ruled = [f"| {line} |" for line in cells]
    return "\n".join([ruled[0], "|" + "---|" * len(header), *ruled[1:]])
