"""An examination: every row passes every check once; findings are sorted by severity."""

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from glassformer import notebook
from glassformer.config import DataConfig
from glassformer.data.columns import Columns
from glassformer.data.doctor.check import Check, Figures, Finding, Specimen, Where, worst_first
from glassformer.data.doctor.cleaning import Cleaned, write_clean
from glassformer.data.doctor.reading import Places, Reading, Source
from glassformer.data.doctor.repairs import Repairs
from glassformer.data.rows import Row
from glassformer.data.samples import NO_SPLIT, SPLITS, Sample, Samples
from glassformer.data.schema import Schema
from glassformer.data.splits import hashed
from glassformer.data.splitter import (
    IngestReport,
    Skipped,
    Splits,
    Splitter,
    related_lines,
)
from glassformer.errors import worded
from glassformer.terminal import printable
from glassformer.wording import counted

MOST_ROWS = 200_000  # before training
SLOW_ROWS = 10_000  # of those, for checks that take long
MOST_BYTES = 32_000_000
MANY = 0.01  # of the held-out rows; fewer with the answer of a training row do no harm


@dataclass(frozen=True, kw_only=True, slots=True)
class Examination:
    """The findings in some data.

    Attributes:
        job: The job the data are for.
        findings: Worst first.
        rows: Complete rows by split.
        total: All rows; fewer may have been examined.
        columns: By role, of each file.
        headers: Whether the first row was read as a header, of each file that is a text table.
        unread: Columns without a role, of each file that has some.
        encodings: Of each file that is text.
        guesses: What else fits: columns and jobs, a line each.
        to_drop: Rows that a cleaned copy drops, and why.
        checks: Those that say what a cleaned copy corrects.
    """

    findings: tuple[Finding, ...]
    rows: Mapping[str, int]
    seen: int
    total: int
    job: str = ""
    figures: Figures = field(default_factory=dict)
    columns: Mapping[str, Columns] = field(default_factory=dict)
    headers: Mapping[str, bool] = field(default_factory=dict)
    unread: Mapping[str, Sequence[str]] = field(default_factory=dict)
    encodings: Mapping[str, str] = field(default_factory=dict)
    guesses: Sequence[str] = ()
    to_drop: Mapping[int, str] = field(default_factory=dict)
    checks: Sequence[Check] = ()
    reading: Reading | None = None

    @property
    def alarms(self) -> list[Finding]:
        """What should be fixed: errors and warnings."""
        return [finding for finding in self.findings if finding.severity != "note"]

    @property
    def verdict(self) -> str:
        """One sentence if there are no errors and warnings, otherwise empty."""
        if self.alarms:
            return ""
        if self.findings:
            return "No errors or warnings; check whether the notes matter to you."
        return "All clear: nothing to fix."

    def __repr__(self) -> str:
        files = ", ".join(self.columns)
        title = printable(f"{files}: {self.title}" if files else self.title)
        return "\n".join(filter(None, [title, *map(repr, self.findings), self.verdict]))

    def _repr_html_(self) -> str:
        """The findings as a table, worst first."""
        rows = [
            (one.severity, one.what, worded(one.advice), ", ".join(one.rows))
            for one in self.findings
        ]
        header = ("", "what", "what to do", "rows") if rows else ()
        return notebook.table(self.title, rows, header) + notebook.paragraphs([self.verdict])

    @property
    def title(self) -> str:
        """The job and the number of rows."""
        return f"for {self.job}, {self.counts}" if self.job else self.counts

    @property
    def counts(self) -> str:
        """The number of rows by split.

        >>> Examination(findings=(), rows={"train": 7, "test": 1}, seen=8, total=8).counts
        '7 train, 1 test rows'
        >>> Examination(findings=(), rows={"train": 1}, seen=1, total=1).counts
        '1 train row'
        """
        counts = ", ".join(f"{count:,} {split}" for split, count in self.rows.items())
        return f"{counts or 'no'} {'row' if [*self.rows.values()] == [1] else 'rows'}"

    def fix(self, out: str | Path) -> Cleaned:
        """Write a cleaned copy to a new file, or to a new folder for several files."""
        if self.reading is None:
            raise ValueError("samples of a run were examined, not files; examine the files to fix")
        return write_clean(self.reading, self.to_drop, Path(out), Repairs.of(self.checks))

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {
            "job": self.job,
            "rows": dict(self.rows),
            "seen": self.seen,
            "total": self.total,
            "columns": dict(self.columns),
            "headers": dict(self.headers),
            "unread": {name: list(columns) for name, columns in self.unread.items()},
            "encodings": dict(self.encodings),
            "guesses": list(self.guesses),
            "findings": [finding.as_values() for finding in self.findings],
            "figures": {title: dict(table) for title, table in self.figures.items()},
        }


def examine(
    reading: Reading,
    checks: Sequence[Check],
    *,
    seed: int = 0,
    seen: Callable[[int], None] | None = None,
) -> Examination:
    """Run the checks over every row of some files.

    Args:
        seed: The seed of the training run: it decides what is held out.
        seen: Called now and then with the number of rows read.
    """
    places, rows, number = Places(), Counter[str](), -1
    lost: defaultdict[str, list[int]] = defaultdict(list)
    training = Training(reading, seed)
    for number, source, row in reading:
        if seen is not None and number % 1000 == 999:
            seen(number + 1)
        places.add(row)
        for loss in row.losses:
            lost[loss].append(number)
        split = source.split_of(row)
        if split is None:
            continue
        shown, fault = source.specimen(number, split, row)
        rows[split] += not fault
        training.see(number, source, row, shown.sample, fault)
        for check in checks:
            if fault:
                check.see_incomplete(shown, fault)
            else:
                check.see(shown)
    read_as = {s.name: s.encoding for s in reading.sources if s.encoding is not None}
    of_training = [finding.located(places.where) for finding in training.findings()]
    about_files = [finding for source in reading.sources for finding in source.findings()]
    about_files += [finding.located(places.where) for finding in lost_findings(lost)]
    return Examination(
        findings=worst_first([*about_files, *of_training, *_findings(checks, places.where)]),
        rows=_in_order(rows),
        seen=number + 1,
        total=number + 1,
        figures={title: table for check in checks for title, table in check.figures().items()},
        columns={source.name: source.columns for source in reading.sources},
        headers={s.name: s.header for s in reading.sources if s.header is not None},
        unread={s.name: s.unread for s in reading.sources if s.unread},
        encodings={name: encoding.name for name, encoding in read_as.items()},
        guesses=[line for source in reading.sources[:1] for line in source.runner_up_lines()],
        to_drop={n: why for check in reversed(checks) for n, why in check.to_drop().items()},
        checks=checks,
        reading=reading,
    )


def examine_samples(
    samples: Samples,
    schema: Schema,
    config: DataConfig,
    checks: Sequence[Check],
    *,
    most_rows: int = MOST_ROWS,
    most_bytes: int = MOST_BYTES,
) -> Examination:
    """A brief examination of the samples of a run, before training.

    Beyond the limits, only every n-th row is examined, without the checks that need all rows. Slow
    checks see fewer rows still.
    """
    step = max(1, -(-len(samples) // most_rows), -(-len(samples.records.rows.values) // most_bytes))
    able = [check for check in checks if step == 1 or not check.needs_all]
    rows = Counter[str]()
    examined = np.arange(0, len(samples), step)
    numbers = examined[samples.splits[examined] != NO_SPLIT].tolist()
    splits = [SPLITS[split] for split in samples.splits[numbers].tolist()]
    slow_step = -(-len(numbers) // SLOW_ROWS)
    chosen = zip(numbers, splits, samples.take(numbers), strict=True)
    for place, (number, split, sample) in enumerate(chosen):
        rows[split] += 1
        content, group = hashed(schema.content(sample, config)), str(sample.get("group") or "")
        shown = Specimen(number, split, sample, content, group)
        for check in able:
            if place % slow_step == 0 or not check.slow:
                check.see(shown)
    return Examination(
        findings=worst_first(_findings(able, lambda number: str(samples[number]["where"]))),
        rows=_in_order(rows),
        seen=len(examined),
        total=len(samples),
        figures={title: table for check in able for title, table in check.figures().items()},
    )


def _findings(checks: Sequence[Check], where: Where) -> Iterator[Finding]:
    for check in checks:
        yield from (finding.located(where) for finding in check.findings())


def lost_findings(lost: Mapping[str, Sequence[int]]) -> Iterator[Finding]:
    """Findings about rows of which something could not be kept."""
    for what, numbers in lost.items():
        advice = "the rest of these rows is read; correct them where the file was made"
        yield Finding(
            "losses", "warning", f"{counted(len(numbers), 'row')} with {what}", advice, numbers
        )


def _in_order(rows: Mapping[str, int]) -> dict[str, int]:
    return {split: rows[split] for split in SPLITS if rows.get(split)}


class Training:
    """Splits the rows as training would.

    Args:
        seed: The seed of the training run.
    """

    def __init__(self, reading: Reading, seed: int) -> None:
        self.names = ", ".join(dict.fromkeys(source.name for source in reading.sources))
        self.splitter = Splitter(reading.config, reading.schema, seed)
        self.report = IngestReport()
        self.splits, self.numbers = bytearray(), array("Q")  # of the rows that training takes

    def see(self, number: int, source: Source, row: Row, sample: Sample, fault: str) -> None:
        """Process a row, with the reason to leave it out, if any."""
        if fault:
            self.report.skip(fault, row.where)
            return
        split = self.splitter.split_for(source.split, row, source.columns, sample, self.report)
        if split is not None:
            self.splits.append(SPLITS.index(split))
            self.numbers.append(number)

    def findings(self) -> Iterator[Finding]:
        """What training's splits share, and a finding if training would refuse the data."""
        given = np.frombuffer(self.splits, dtype=np.uint8)
        splits, _ = self.splitter.final_splits(given, self.report)
        self.report.count(splits)
        yield from self._related(splits)
        refused = self.splitter.refusal(self.report, with_skipped=False)
        if refused is not None:
            what, advice = refused
            held_out = self.splits and not any(self.splitter.drawn)  # all of them, explicitly
            what = f"training would refuse {self.names}: {what}"
            severity = "note" if held_out else "error"
            yield Finding("no training", severity, what, advice, total=len(splits))

    def _related(self, splits: Splits) -> Iterator[Finding]:
        """Held-out rows that share something with training rows besides their content."""
        for line, advice in self.report.together.items():
            yield Finding("kept together", "note", line, advice)
        for kind, hashes in self.splitter.related.items():
            by_heart = kind in self.splitter.schema.together and not self.splitter.groups
            by_heart = by_heart and not self.splitter.is_fixed_set(kind)
            for split, rows in self.splitter.also_trained(hashes, splits):
                found = {kind: {split: Skipped(len(rows), "")}}
                (what,) = related_lines(found, self.report.counts)
                severe = by_heart and len(rows) >= MANY * self.report.counts[split]
                severity = "warning" if severe else "note"
                advice = f"scores on {split} count answers that may have been learned by heart"
                numbers = [self.numbers[row] for row in rows.tolist()]
                yield Finding("shared answers", severity, what, advice, numbers)
