"""Assigns each row to a split, and checks that the splits can be trained on.

The split of its file; the value of its `split` column; or, for splits that are not given, a hash of
its group or its content, so that what belongs together stays together. Without groups, each split
gets its share of every label, if the job has labels; where all rows have a time, the last ones.

Rows that share something else by which they could be learned by heart, such as a transcript, stay
together as well, unless it is so common that it is a label in effect, or ties all groups together.
"""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Int, UInt8, UInt64

from glassformer.config import DataConfig
from glassformer.data.columns import Columns
from glassformer.data.rows import Row
from glassformer.data.samples import NO_SPLIT, SPLITS, Sample, Samples
from glassformer.data.schema import Schema
from glassformer.data.splits import (
    components,
    ends_of,
    hashed,
    last_first,
    mixed,
    named_split,
    seeded_hash,
    split_at,
    stratified,
)
from glassformer.wording import counted

FEWEST = 10  # groups or contents to train on, of which one can be spared
ENOUGH_GROUPS = 20  # with fewer, holding out whole groups would hold out too much or nothing
REPEATS = 10  # rows of each transcript, on average; with more, transcripts are a fixed set
LARGEST, FEW_ROWS = 0.1, 10  # of the rows may stay together, or so many rows

Splits = UInt8[np.ndarray, " samples"]
Hashes = UInt64[np.ndarray, " samples"]
Drawn = Bool[np.ndarray, " samples"]


@dataclass(slots=True)
class Skipped:
    """Rows skipped for one reason: how many, and the first of them."""

    count: int
    first: str


@dataclass(slots=True)
class IngestReport:
    """What was read: columns by role, rows by split, and skipped rows by reason.

    Attributes:
        columns: Those of the first file.
        others: Those of files with different columns, by file.
        runners_up: Columns of the first file that fit as well as those that were guessed.
        unread: Columns of the first file without a role.
        tables: Tables that are read in place of the folder they lie in, by folder.
        headers: Whether the first row of a text table was read as its header, by file.
        lost: What could not be kept of some rows that are read, by what it is.
        shared: Rows of a given split whose content is also in train, by split.
        together: Which rows stay in one split besides duplicates, or why they do not, and advice.
        related: Held-out rows that share something else with training rows, such as their
            transcripts: by what it is, then by split.
    """

    columns: Columns = field(default_factory=dict)
    others: dict[str, Columns] = field(default_factory=dict)
    runners_up: Columns = field(default_factory=dict)
    unread: list[str] = field(default_factory=list)
    tables: dict[str, str] = field(default_factory=dict)
    headers: dict[str, bool] = field(default_factory=dict)
    lost: dict[str, Skipped] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)
    shared: dict[str, Skipped] = field(default_factory=dict)
    together: dict[str, str] = field(default_factory=dict)
    related: dict[str, dict[str, Skipped]] = field(default_factory=dict)

    def note(self, file: str, columns: Columns, header: bool | None = None) -> None:
        """Record the columns of a file, and whether it has a header."""
        if header is not None:
            self.headers[str(file)] = header
        self.columns = self.columns or columns
        if columns != self.columns:
            self.others[file] = columns

    def count(self, splits: Splits) -> None:
        """Record the number of samples per split."""
        counts = {split: int((splits == number).sum()) for number, split in enumerate(SPLITS)}
        self.counts = {split: count for split, count in counts.items() if count}

    def skip(self, reason: str, where: str) -> None:
        """Record a skipped row."""
        self.skipped.setdefault(reason, Skipped(0, where)).count += 1

    def lose(self, what: str, where: str) -> None:
        """Record what could not be kept of a row."""
        self.lost.setdefault(what, Skipped(0, where)).count += 1


def related_lines(
    related: Mapping[str, Mapping[str, Skipped]], counts: Mapping[str, int]
) -> list[str]:
    """How many held-out rows share something with training rows, a line for each split.

    >>> related_lines({"transcript": {"test": Skipped(3, "a.csv row 2")}}, {"test": 8})
    ['3 of 8 test rows (37.5 %) have a transcript that training rows also have']
    """
    return [
        f"{entry.count:,} of {counted(counts[split], f'{split} row')} "
        f"({100 * entry.count / counts[split]:.1f} %) {'has' if entry.count == 1 else 'have'} a "
        f"{kind} that training rows also have"
        for kind, splits in related.items()
        for split, entry in splits.items()
    ]


class Splitter:
    """Assigns splits row by row, and finalises them when all rows are known.

    A row is held out for valid or test by its hash. It returns to train if that split turns out to
    be given, by a file or by a `split` column, and is skipped if its content is also in train, with
    another group.
    """

    def __init__(self, config: DataConfig, schema: Schema, seed: int) -> None:
        self.config, self.schema, self.seed = config, schema, seed
        self.shares = {"valid": config.valid_share, "test": config.test_share}
        self.ends = ends_of(self.shares)
        self.named = {split for split in self.shares if getattr(config, split)}
        self.drawn = bytearray()  # for each sample, whether its hash decides
        self.contents = array("Q")  # for each sample, a hash of its content
        self.strata = array("Q")  # for each sample, a hash of its label
        self.units = array("Q")  # for each sample, the hash that decides, of its group or content
        self.related = {kind: array("Q") for kind in schema.related_kinds}  # what samples share
        self.times = array("d")  # for each sample, if all have one
        self.grouped = not config.stratify  # whether something else than labels counts
        self.groups = False  # whether there are groups

    def split_for(
        self, source_split: str, row: Row, columns: Columns, sample: Sample, report: IngestReport
    ) -> str | None:
        """The split of a row; None skips it."""
        value = row[columns["split"]] if "split" in columns else ""
        split = named_split(value, row.where) if value else source_split
        if source_split not in ("train", split):
            report.skip(f"split {split!r} in a file for {source_split}", row.where)
            return None
        content = seeded_hash(self.schema.content(sample, self.config), self.seed)
        self.contents.append(content)
        self.strata.append(self._stratum_of(sample))
        if (time := self.schema.time(sample)) is not None:
            self.times.append(time)
        found = self.schema.related(sample) if self.related else {}
        for kind, hashes in self.related.items():
            hashes.append(seeded_hash(found[kind], self.seed) if kind in found else content)
        self.drawn.append(split == "train")
        group = sample.get("group")
        self.units.append(seeded_hash(str(group), self.seed) if group else content)
        if split != "train":
            self.named.add(split)
            return split
        self.groups = self.groups or bool(group)
        self.grouped = self.grouped or bool(group)
        return split_at(self.units[-1], self.ends)

    def _stratum_of(self, sample: Sample) -> int:
        stratum = self.schema.stratum(sample)
        self.grouped = self.grouped or stratum is None
        return 0 if stratum is None else hashed(stratum)

    def finalise(self, samples: Samples, report: IngestReport) -> Samples:
        """The samples with their final splits."""
        splits, strays = self.final_splits(samples.splits, report)
        for row in strays.tolist():
            report.skip(
                f"a {self.schema.noun} that is also in another split, with another group",
                samples[row]["where"],
            )
        report.count(splits)

        def skipped(rows: Int[np.ndarray, " rows"]) -> Skipped:
            return Skipped(len(rows), samples[int(rows[0])]["where"])

        for split, rows in self.also_trained(self.contents, splits):
            report.shared[split] = skipped(rows)
        for kind, hashes in self.related.items():
            found = {split: skipped(rows) for split, rows in self.also_trained(hashes, splits)}
            if found:
                report.related[kind] = found
        return samples.with_splits(splits)

    def also_trained(
        self, keys: "array[int]", splits: Splits
    ) -> Iterator[tuple[str, Int[np.ndarray, " rows"]]]:
        """The held-out samples with a key that training samples have, by split, if there are any.

        Args:
            keys: A hash for each sample, such as of its transcript.
        """
        hashes = np.array(keys, dtype=np.uint64)
        trained = np.unique(hashes[splits == SPLITS.index("train")])
        for split in ("valid", "test"):
            rows = np.flatnonzero(splits == SPLITS.index(split))
            if len(rows := rows[np.isin(hashes[rows], trained)]):
                yield split, rows

    def final_splits(
        self, chosen: Splits, report: IngestReport
    ) -> tuple[Splits, Int[np.ndarray, " strays"]]:
        """The final split of each sample, and the samples to skip."""
        splits, drawn = chosen.copy(), np.frombuffer(self.drawn, dtype=bool)
        units = np.array(self.units, dtype=np.uint64)
        if not self.grouped and drawn.any():
            splits[drawn] = self._stratified(drawn)
        else:
            for kind in self.schema.together if self.config.together else ():
                units = self._held_together(kind, units, drawn, report)
                points = [split_at(unit, self.ends) for unit in units[drawn].tolist()]
                splits[drawn] = [SPLITS.index(split) for split in points]
            splits = self._with_one("valid", splits, units, drawn)
            many = len(np.unique(units[drawn])) >= ENOUGH_GROUPS
            if self.groups and many:
                splits = self._with_one("test", splits, units, drawn)
        for split in self.named:
            splits[drawn & (splits == SPLITS.index(split))] = SPLITS.index("train")
        _, content = np.unique(np.array(self.contents)[drawn], return_inverse=True)
        lowest = np.full(len(content), NO_SPLIT, dtype=np.uint8)
        np.minimum.at(lowest, content, splits[drawn])
        strays = np.flatnonzero(drawn)[splits[drawn] > lowest[content]]
        splits[strays] = NO_SPLIT
        return splits, strays

    def _held_together(
        self, kind: str, units: Hashes, drawn: Drawn, report: IngestReport
    ) -> Hashes:
        """Units of which no two share a key, such as a transcript, where that leaves enough units.

        Args:
            kind: What the key is of.
            units: The hash of each sample that decides its split so far.
        """
        keys, rows = np.array(self.related[kind], dtype=np.uint64), int(drawn.sum())
        different, counts = np.unique(keys[drawn], return_counts=True)
        if len(different) == rows or not any(self.shares[s] for s in {*self.shares} - self.named):
            return units
        has = f"{rows:,} rows have {counted(len(different), f'different {kind}')}"
        if self.is_fixed_set(kind):
            line = f"{has}: too few to keep the rows of each in one split"
            report.together[line] = "nothing to do if no others will occur"
            return units
        most = max(FEW_ROWS, int(LARGEST * rows))
        common = different[counts > most]
        linked = np.where(np.isin(keys, common), units, keys)
        linked[~drawn] = units[~drawn]
        component = components(units, linked)
        sizes, before = (
            np.bincount(component[drawn]),
            np.unique(units[drawn], return_counts=True)[1],
        )
        if (sizes > 0).sum() < ENOUGH_GROUPS or sizes.max() > max(most, before.max()):
            by = self.config.group or report.columns.get("group", "group")
            line = f"{has}; rows are kept in one split by {by}, as rows of different {by}s share "
            report.together[f"{line}{kind}s"] = (
                f"scores hold for new {by}s, whose {kind}s may be known"
            )
            return units
        line = f"{has}; those with the same {kind} are in one split"
        if len(common):
            line += f", except for {counted(len(common), kind)} that more than {most:,} rows have"
        report.together[line] = "--set data.together=false splits without regard to this"
        lowest = np.full(component.max() + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
        np.minimum.at(lowest, component, linked)
        return mixed(lowest)[component]

    def is_fixed_set(self, kind: str) -> bool:
        """Whether so few different ones, such as transcripts of digits, are labels in effect."""
        different = len({*self.related[kind]})
        return len(self.contents) > REPEATS * different or different < ENOUGH_GROUPS

    def _with_one(self, split: str, splits: Splits, units: Hashes, drawn: Drawn) -> Splits:
        """The same splits; of few groups or contents, one is held out if no hash falls there."""
        if not self.shares[split] or split in self.named:
            return splits
        trained = np.unique(units[drawn & (splits == SPLITS.index("train"))])
        if (splits[drawn] == SPLITS.index(split)).any() or len(trained) < FEWEST:
            return splits
        return np.where(drawn & (units == trained[0]), np.uint8(SPLITS.index(split)), splits)

    def _stratified(self, drawn: Drawn) -> UInt8[np.ndarray, " drawn"]:
        """The splits of the drawn samples, each with its share of every stratum."""
        contents, strata = (np.array(a, dtype=np.uint64) for a in (self.contents, self.strata))
        shares = self.shares
        if len(self.times) == len(contents):
            contents = last_first(contents, np.array(self.times))
            order = [split for split in ("test", "valid") if split not in self.named]
            shares = {split: self.shares[split] for split in order}
        by_number = np.array([SPLITS.index(split) for split in (*shares, "train")], dtype=np.uint8)
        return by_number[stratified(contents[drawn], strata[drawn], list(shares.values()))]

    def refusal(self, report: IngestReport, *, with_skipped: bool = True) -> tuple[str, str] | None:
        """What is wrong and what to do, if the data cannot be trained on.

        Training needs training rows and validation rows.

        Args:
            with_skipped: Whether to say what is wrong with rows that were skipped.
        """
        read = sum(report.counts.values())
        reasons = "; ".join(
            f"{entry.count:,} with {reason}, first {entry.first}"
            for reason, entry in report.skipped.items()
        )
        skipped = f" ({reasons})" if with_skipped else ""
        if not read:
            return f"no usable row{skipped}", "check the columns, or name them with --columns"
        if not self.config.files:
            return None
        held_out = {split for split in ("valid", "test") if report.counts.get(split)}
        group = " or smaller groups" if self.config.group else ""
        if not report.counts.get("train"):
            rows = "1 row, which is" if read == 1 else f"{read:,} rows, all of them"
            return (
                f"{rows} in {' and '.join(sorted(held_out))}, with none left to train on",
                f"give more rows{group}",
            )
        if self.config.valid and "valid" not in held_out:
            return (
                f"no usable row in --valid{skipped}",
                "check those files; rows that are training data, too, do not count",
            )
        if self.config.valid_share and "valid" not in held_out:
            return (
                f"{self._counted(read)} too few to hold some out for validation",
                f"give more rows{group}, or give some with --valid",
            )
        if self.config.test and "test" not in held_out:
            return f"no usable row in --test{skipped}", "check those files, or leave them out"
        return None

    def _counted(self, read: int) -> str:
        """The number of rows, and of different inputs if there are fewer."""
        different = len({*self.contents})
        if different < read:
            ending = "" if different == 1 else "s"
            return f"{read:,} rows with only {different:,} different {self.schema.noun}{ending} are"
        return "1 row is" if read == 1 else f"{read:,} rows are"
