"""Intake: from raw files to samples in parts, in one pass.

Which part a row belongs to: the part its file was given for; what its `split` column says; or, for
parts that nobody named, a hash of its group or its content, so that what belongs together stays
together. Rows that lack something are left out and counted.
"""

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path

import numpy as np

from glassformer.config import DataConfig
from glassformer.data.catalog import CATALOG
from glassformer.data.catalog.hub import PREFIX, read_hub
from glassformer.data.columns import find_columns
from glassformer.data.rows import Row
from glassformer.data.samples import NO_PART, PARTS, Sample, Samples
from glassformer.data.sources import read_rows
from glassformer.data.sources.files import kind_of
from glassformer.data.sources.parallel import pair_files, paired, read_parallel
from glassformer.data.splits import SPLIT_NAMES, content_key, part_of, split_names
from glassformer.data.text.chinese import simplified
from glassformer.errors import GlassformerError

LOOKED_AT = 200  # rows by which columns are guessed
LISTS = ("label", "labels", "references")  # roles that may have several values
PAIR = {"source", "target"}  # roles of a job that reads one text and writes another

Columns = dict[str, str]
Seen = Callable[[int], None]


@dataclass(slots=True)
class Skipped:
    """Rows left out for one reason: how many, and the first of them."""

    count: int
    first: str


@dataclass(slots=True)
class Taken:
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

    def skip(self, reason: str, where: str) -> None:
        """Leave a row out."""
        self.skipped.setdefault(reason, Skipped(0, where)).count += 1


def take_in(
    config: DataConfig,
    roles: Sequence[str],
    folder: Path,
    *,
    seed: int = 0,
    seen: Seen | None = None,
) -> tuple[Samples, Taken]:
    """Read all files of a configuration into samples.

    Args:
        roles: What a sample must have, such as text and label; a `?` marks what it may lack.
        seen: Told now and then how many rows were read.
    """
    given, taken, parting = names_by_part(config, roles), Taken(), Parting(config, seed)

    def samples() -> Iterator[tuple[str, Sample]]:
        number = 0
        for asked, names in given.items():
            for name in names:
                rows, columns = open_rows(name, config, roles, asked)
                taken.note(name, columns)
                for row in rows:
                    number += 1
                    if seen is not None and number % 1000 == 0:
                        seen(number)
                    sample = _sample(row, columns, roles, taken)
                    if sample is None:
                        continue
                    part = parting.part_for(asked, row, columns, sample, taken)
                    if part is not None:
                        yield part, sample

    folder.mkdir(parents=True, exist_ok=True)
    stored = parting.settle(Samples.write(folder, samples()), taken)
    counts = {part: len(stored.rows(part)) for part in PARTS}
    taken.counts = {part: count for part, count in counts.items() if count}
    _refuse_nothing(taken, config)
    return stored, taken


def names_by_part(config: DataConfig, roles: Sequence[str]) -> dict[str, Sequence[str]]:
    """What was given for each part. For pairs of texts, every two plain files are one name."""
    given: dict[str, Sequence[str]] = dict(
        zip(PARTS, (config.files, config.valid, config.test), strict=True)
    )
    if not any(given.values()):
        raise GlassformerError("no data given; name a file, a folder or a set of the catalog")
    if not {*roles} >= PAIR:
        return given
    return {part: pair_files(names, _is_file) for part, names in given.items()}


def open_rows(
    name: str, config: DataConfig, roles: Sequence[str], asked: str
) -> tuple[Iterator[Row], Columns]:
    """The rows of a file, two files, a folder or a set of the catalog, and its columns by role.

    Args:
        asked: The part the file was given for. Rows are held out of `train` only, so that is where
            their groups matter.
    """
    path, given = Path(name), dict(config.columns)
    group = config.group or given.get("group")
    if two := paired(name):
        rows = read_parallel(*two, config.encoding)
    elif name.startswith(PREFIX) and not path.exists():
        rows = read_hub(name)
    elif path.exists() or name not in CATALOG:
        _refuse_nearly_named(path)
        rows = read_rows(path, encoding=config.encoding)
    else:
        rows, group = CATALOG[name].rows(), group or CATALOG[name].group
    for role in ("group", "split") if asked != "train" else ():
        given.pop(role, None)
    grouped = {"group": group} if group and asked == "train" else {}
    head = list(islice(rows, LOOKED_AT))
    columns = find_columns(head, [*roles, *grouped, "split?"], given | grouped)
    if "split" in columns and "split" not in given and not _splits(head, columns["split"]):
        del columns["split"]
    return chain(head, rows), columns


class Parting:
    """Chooses parts row by row, and settles them when all rows are known.

    A row is held out for valid or test by its hash. It goes back to train when that part turns out
    to be named, by a file or by a `split` column, and is left out when its text is in train as
    well, with another group.
    """

    def __init__(self, config: DataConfig, seed: int) -> None:
        self.seed, self.in_simplified = seed, config.tokenizer.simplified
        self.shares = {"valid": config.valid_share, "test": config.test_share}
        self.named = {part for part in self.shares if getattr(config, part)}
        self.drawn = bytearray()  # for each sample, whether its hash chose
        self.contents = array("Q")  # for each sample, a hash of what it says

    def part_for(
        self, asked: str, row: Row, columns: Columns, sample: Sample, taken: Taken
    ) -> str | None:
        """The part of a row; None leaves it out."""
        said = row[columns["split"]] if "split" in columns else ""
        split = split_names(said, row.where) if said else asked
        if asked not in ("train", split):
            taken.skip(f"split {split!r} in what was given for {asked}", row.where)
            return None
        text = " ".join(_content(sample))
        content = content_key(simplified(text) if self.in_simplified else text)
        self.contents.append(
            int.from_bytes(
                blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            )
        )
        self.drawn.append(split == "train")
        if split != "train":
            self.named.add(split)
            return split
        return part_of(str(sample.get("group") or content), self.shares, self.seed)

    def settle(self, samples: Samples, taken: Taken) -> Samples:
        """The samples, each in the part it stays in."""
        parts, drawn = samples.parts.copy(), np.frombuffer(self.drawn, dtype=bool)
        for part in self.named:
            parts[drawn & (parts == PARTS.index(part))] = PARTS.index("train")
        _, content = np.unique(np.array(self.contents)[drawn], return_inverse=True)
        lowest = np.full(len(content), NO_PART, dtype=np.uint8)
        np.minimum.at(lowest, content, parts[drawn])
        strays = np.flatnonzero(drawn)[parts[drawn] > lowest[content]]
        parts[strays] = NO_PART
        for row in strays.tolist():
            taken.skip(
                "a text that is also in another part, with another group", samples[row]["where"]
            )
        trained = np.unique(np.array(self.contents)[parts == PARTS.index("train")])
        for part in ("valid", "test"):
            rows = np.flatnonzero(parts == PARTS.index(part))
            twice = rows[np.isin(np.array(self.contents)[rows], trained)]
            if len(twice):
                taken.shared[part] = Skipped(len(twice), samples[int(twice[0])]["where"])
        Samples.assign(samples.folder, parts)
        return Samples.open(samples.folder)


def _sample(row: Row, columns: Columns, roles: Sequence[str], taken: Taken) -> Sample | None:
    """What is kept of a row; None when it lacks something."""
    sample: Sample = {"where": row.where}
    for role in roles:
        name = role.removesuffix("?")
        if name not in columns:
            continue
        value = row[columns[name]]
        if isinstance(value, list) and name not in LISTS:
            is_first = name == "target" and columns[name] == columns.get("references")
            # Otherwise it is a text that comes as a list of its words.
            value = next(iter(value), "") if is_first else " ".join(value)
        if isinstance(value, str) and not value.strip() and name == role:
            taken.skip(f"empty {name}", row.where)
            return None
        sample[name] = value
    if "group" in columns:
        sample["group"] = row[columns["group"]]
    return sample


def _content(sample: Sample) -> list[str]:
    """What makes two samples duplicates: what is read, not what is said about it or to be said."""
    about = {"where", "group", "target", *LISTS}
    return [str(value) for role, value in sample.items() if role not in about]


def _splits(head: Sequence[Row], column: str) -> bool:
    """Whether a column names parts: `split` if any of its values does, a `subset` if all do."""
    said = {str(row[column]).strip().casefold() for row in head} - {""}
    if column.strip().casefold() == "split" and said & set(SPLIT_NAMES):
        return True
    return said <= set(SPLIT_NAMES)


def _is_file(name: str) -> bool:
    """Whether this is a file, which must be there, rather than a folder or a set."""
    path = Path(name)
    if not path.exists() and (name in CATALOG or name.startswith(PREFIX)):
        return False
    _refuse_nearly_named(path)
    return kind_of(path) == "file"


def _refuse_nearly_named(path: Path) -> None:
    """A set of the catalog that is misspelt is no missing file."""
    near = get_close_matches(str(path), CATALOG, n=1)
    if near and not path.exists():
        raise GlassformerError(f"{path}: not found; did you mean the set {near[0]!r}?")


def _refuse_nothing(taken: Taken, config: DataConfig) -> None:
    """Training needs rows, and rows held out to choose by."""
    names = ", ".join([*config.files, *config.valid, *config.test])
    read = sum(taken.counts.values())
    left_out = "; ".join(
        f"{entry.count:,} with {reason}, first {entry.first}"
        for reason, entry in taken.skipped.items()
    )
    if not read:
        raise GlassformerError(
            f"{names}: no row to use ({left_out}); check the columns, or name them with --columns"
        )
    if not config.files:
        return
    held_out = {part for part in ("valid", "test") if taken.counts.get(part)}
    group = " or fewer rows to a group" if config.group else ""
    if not taken.counts.get("train"):
        raise GlassformerError(
            f"{names}: {read:,} rows, and all fell into {' and '.join(sorted(held_out))}, none "
            f"is left to train on; give more rows{group}"
        )
    if (config.valid_share or config.valid) and "valid" not in held_out:
        raise GlassformerError(
            f"{names}: {read:,} rows are too few to hold some out for validation; "
            f"give more rows{group}, or give some with --valid"
        )
