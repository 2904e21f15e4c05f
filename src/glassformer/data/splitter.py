"""Which split each row belongs to, and whether a training can come of the splits.

The split its file was given for; what its `split` column says; or, for splits that nobody named, a
hash of its group or its content, so that what belongs together stays together.
"""

from array import array
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Int, UInt8

from glassformer.config import DataConfig
from glassformer.data.columns import Columns
from glassformer.data.rows import Row
from glassformer.data.samples import NO_SPLIT, SPLITS, Sample, Samples
from glassformer.data.schema import Schema
from glassformer.data.splits import hashed, named_split, split_of

Splits = UInt8[np.ndarray, " samples"]


@dataclass(slots=True)
class Skipped:
    """Rows left out for one reason: how many, and the first of them."""

    count: int
    first: str


@dataclass(slots=True)
class IngestReport:
    """What came in: columns by role, rows by split, and what was left out, by reason.

    Attributes:
        columns: Those of the first file.
        others: Those of files that have other columns than the first, by file.
        shared: Rows of a split that was given whose content is in train as well, by split.
    """

    columns: Columns = field(default_factory=dict)
    others: dict[str, Columns] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    shared: dict[str, Skipped] = field(default_factory=dict)

    def note(self, file: str, columns: Columns) -> None:
        """Keep which columns a file has."""
        self.columns = self.columns or columns
        if columns != self.columns:
            self.others[file] = columns

    def count(self, splits: Splits) -> None:
        """Keep how many samples each split has."""
        counts = {split: int((splits == number).sum()) for number, split in enumerate(SPLITS)}
        self.counts = {split: count for split, count in counts.items() if count}

    def skip(self, reason: str, where: str) -> None:
        """Leave a row out."""
        self.skipped.setdefault(reason, Skipped(0, where)).count += 1


class Splitter:
    """Chooses splits row by row, and settles them when all rows are known.

    A row is held out for valid or test by its hash. It goes back to train when that split turns out
    to be named, by a file or by a `split` column, and is left out when its content is in train as
    well, with another group.
    """

    def __init__(self, config: DataConfig, schema: Schema, seed: int) -> None:
        self.config, self.schema, self.seed = config, schema, seed
        self.shares = {"valid": config.valid_share, "test": config.test_share}
        self.named = {split for split in self.shares if getattr(config, split)}
        self.drawn = bytearray()  # for each sample, whether its hash chose
        self.contents = array("Q")  # for each sample, a hash of its content

    def split_for(
        self, given_for: str, row: Row, columns: Columns, sample: Sample, report: IngestReport
    ) -> str | None:
        """The split of a row; None leaves it out."""
        value = row[columns["split"]] if "split" in columns else ""
        split = named_split(value, row.where) if value else given_for
        if given_for not in ("train", split):
            report.skip(f"split {split!r} in what was given for {given_for}", row.where)
            return None
        content = self.schema.content(sample, self.config)
        self.contents.append(hashed(content))
        self.drawn.append(split == "train")
        if split != "train":
            self.named.add(split)
            return split
        return split_of(str(sample.get("group") or content), self.shares, self.seed)

    def settle(self, samples: Samples, report: IngestReport) -> Samples:
        """The samples, each in the split it stays in."""
        splits, strays = self.settled(samples.splits)
        for row in strays.tolist():
            report.skip(
                f"a {self._input} that is also in another split, with another group",
                samples[row]["where"],
            )
        report.count(splits)
        trained = np.unique(np.array(self.contents)[splits == SPLITS.index("train")])
        for split in ("valid", "test"):
            rows = np.flatnonzero(splits == SPLITS.index(split))
            twice = rows[np.isin(np.array(self.contents)[rows], trained)]
            if len(twice):
                report.shared[split] = Skipped(len(twice), samples[int(twice[0])]["where"])
        Samples.assign(samples.folder, splits)
        return Samples.open(samples.folder)

    def settled(self, chosen: Splits) -> tuple[Splits, Int[np.ndarray, " strays"]]:
        """The split that each sample stays in, and those that are left out."""
        splits, drawn = chosen.copy(), np.frombuffer(self.drawn, dtype=bool)
        for split in self.named:
            splits[drawn & (splits == SPLITS.index(split))] = SPLITS.index("train")
        _, content = np.unique(np.array(self.contents)[drawn], return_inverse=True)
        lowest = np.full(len(content), NO_SPLIT, dtype=np.uint8)
        np.minimum.at(lowest, content, splits[drawn])
        strays = np.flatnonzero(drawn)[splits[drawn] > lowest[content]]
        splits[strays] = NO_SPLIT
        return splits, strays

    def refusal(self, report: IngestReport) -> tuple[str, str] | None:
        """What is wrong and what to do, if no training can come of this.

        Training needs rows, and rows held out to choose by.
        """
        read = sum(report.counts.values())
        left_out = "; ".join(
            f"{entry.count:,} with {reason}, first {entry.first}"
            for reason, entry in report.skipped.items()
        )
        if not read:
            return f"no row to use ({left_out})", "check the columns, or name them with --columns"
        if not self.config.files:
            return None
        held_out = {split for split in ("valid", "test") if report.counts.get(split)}
        group = " or fewer rows to a group" if self.config.group else ""
        if not report.counts.get("train"):
            return (
                f"{read:,} rows, and all fell into {' and '.join(sorted(held_out))}, none is left "
                f"to train on",
                f"give more rows{group}",
            )
        if (self.config.valid_share or self.config.valid) and "valid" not in held_out:
            return (
                f"{self._counted(read)} too few to hold some out for validation",
                f"give more rows{group}, or give some with --valid",
            )
        if self.config.test and "test" not in held_out:
            return f"no row to use of --test ({left_out})", "check those files, or leave them out"
        return None

    @property
    def _input(self) -> str:
        """The word for what is read of a sample."""
        return self.schema.roles[0].name

    def _counted(self, read: int) -> str:
        """How many rows there are, and how many of them differ in what is read."""
        different = len({*self.contents})
        if different < read:
            ending = "" if different == 1 else "s"
            return f"{read:,} rows with only {different:,} different {self._input}{ending} are"
        return "1 row is" if read == 1 else f"{read:,} rows are"
