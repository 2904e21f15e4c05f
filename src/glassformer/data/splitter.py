"""Which part each row belongs to, and whether a training can come of the parts.

The part its file was given for; what its `split` column says; or, for parts that nobody named, a
hash of its group or its content, so that what belongs together stays together.
"""

from array import array
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
from jaxtyping import Int, UInt8

from glassformer.config import DataConfig
from glassformer.data.rows import Row
from glassformer.data.samples import NO_SPLIT, SPLITS, Sample, Samples
from glassformer.data.splits import content_key, named_split, split_of
from glassformer.data.text.chinese import simplified

LISTS = ("label", "labels", "references")  # roles that may have several values

Columns = dict[str, str]
Parts = UInt8[np.ndarray, " samples"]


@dataclass(slots=True)
class Skipped:
    """Rows left out for one reason: how many, and the first of them."""

    count: int
    first: str


@dataclass(slots=True)
class IngestReport:
    """What came in: columns by role, rows by part, and what was left out, by reason.

    Attributes:
        columns: Those of the first file.
        others: Those of files that have other columns than the first, by file.
        shared: Rows of a part that was given whose text is in train as well, by part.
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

    def count(self, parts: Parts) -> None:
        """Keep how many samples each part has."""
        counts = {part: int((parts == number).sum()) for number, part in enumerate(SPLITS)}
        self.counts = {part: count for part, count in counts.items() if count}

    def skip(self, reason: str, where: str) -> None:
        """Leave a row out."""
        self.skipped.setdefault(reason, Skipped(0, where)).count += 1


class Splitter:
    """Chooses parts row by row, and settles them when all rows are known.

    A row is held out for valid or test by its hash. It goes back to train when that part turns out
    to be named, by a file or by a `split` column, and is left out when its text is in train as
    well, with another group.
    """

    def __init__(self, config: DataConfig, seed: int) -> None:
        self.config, self.seed = config, seed
        self.shares = {"valid": config.valid_share, "test": config.test_share}
        self.named = {part for part in self.shares if getattr(config, part)}
        self.drawn = bytearray()  # for each sample, whether its hash chose
        self.contents = array("Q")  # for each sample, a hash of what it says
        self.reads = "text"  # what is read of a sample

    def part_for(
        self, asked: str, row: Row, columns: Columns, sample: Sample, taken: IngestReport
    ) -> str | None:
        """The part of a row; None leaves it out."""
        said = row[columns["split"]] if "split" in columns else ""
        split = named_split(said, row.where) if said else asked
        if asked not in ("train", split):
            taken.skip(f"split {split!r} in what was given for {asked}", row.where)
            return None
        text = " ".join(_content(sample))
        content = content_key(simplified(text) if self.config.tokenizer.simplified else text)
        self.contents.append(
            int.from_bytes(
                blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            )
        )
        self.drawn.append(split == "train")
        self.reads = "source" if "source" in sample else "text"
        if split != "train":
            self.named.add(split)
            return split
        return split_of(str(sample.get("group") or content), self.shares, self.seed)

    def settle(self, samples: Samples, taken: IngestReport) -> Samples:
        """The samples, each in the part it stays in."""
        parts, strays = self.settled(samples.splits)
        for row in strays.tolist():
            taken.skip(
                "a text that is also in another part, with another group", samples[row]["where"]
            )
        taken.count(parts)
        trained = np.unique(np.array(self.contents)[parts == SPLITS.index("train")])
        for part in ("valid", "test"):
            rows = np.flatnonzero(parts == SPLITS.index(part))
            twice = rows[np.isin(np.array(self.contents)[rows], trained)]
            if len(twice):
                taken.shared[part] = Skipped(len(twice), samples[int(twice[0])]["where"])
        Samples.assign(samples.folder, parts)
        return Samples.open(samples.folder)

    def settled(self, chosen: Parts) -> tuple[Parts, Int[np.ndarray, " strays"]]:
        """The part that each sample stays in, and those that are left out."""
        parts, drawn = chosen.copy(), np.frombuffer(self.drawn, dtype=bool)
        for part in self.named:
            parts[drawn & (parts == SPLITS.index(part))] = SPLITS.index("train")
        _, content = np.unique(np.array(self.contents)[drawn], return_inverse=True)
        lowest = np.full(len(content), NO_SPLIT, dtype=np.uint8)
        np.minimum.at(lowest, content, parts[drawn])
        strays = np.flatnonzero(drawn)[parts[drawn] > lowest[content]]
        parts[strays] = NO_SPLIT
        return parts, strays

    def refusal(self, taken: IngestReport) -> tuple[str, str] | None:
        """What is wrong and what to do, if no training can come of this.

        Training needs rows, and rows held out to choose by.
        """
        read = sum(taken.counts.values())
        left_out = "; ".join(
            f"{entry.count:,} with {reason}, first {entry.first}"
            for reason, entry in taken.skipped.items()
        )
        if not read:
            return f"no row to use ({left_out})", "check the columns, or name them with --columns"
        if not self.config.files:
            return None
        held_out = {part for part in ("valid", "test") if taken.counts.get(part)}
        group = " or fewer rows to a group" if self.config.group else ""
        if not taken.counts.get("train"):
            return (
                f"{read:,} rows, and all fell into {' and '.join(sorted(held_out))}, none is left "
                f"to train on",
                f"give more rows{group}",
            )
        if (self.config.valid_share or self.config.valid) and "valid" not in held_out:
            return (
                f"{self._said(read)} too few to hold some out for validation",
                f"give more rows{group}, or give some with --valid",
            )
        if self.config.test and "test" not in held_out:
            return f"no row to use of --test ({left_out})", "check those files, or leave them out"
        return None

    def _said(self, read: int) -> str:
        """How many rows there are, and how many of them differ in what is read."""
        different = len({*self.contents})
        if different < read:
            ending = "" if different == 1 else "s"
            return f"{read:,} rows with only {different:,} different {self.reads}{ending} are"
        return "1 row is" if read == 1 else f"{read:,} rows are"


def _content(sample: Sample) -> list[str]:
    """What makes two samples duplicates: what is read, not what is said about it or to be said."""
    about = {"where", "group", "target", *LISTS}
    return [str(value) for role, value in sample.items() if role not in about]
