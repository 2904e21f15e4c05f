"""Intake: from raw files to samples in parts, in one pass.

Which part a row belongs to: the part its file was given for; what its `split` column says; or, for
what is to be held out, a hash of its group or its content, so that what belongs together stays
together. Rows that lack something are left out and counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from glassformer.config import DataConfig
from glassformer.data.catalog import CATALOG, open_entry
from glassformer.data.columns import find_columns
from glassformer.data.rows import Row
from glassformer.data.samples import Sample, Samples
from glassformer.data.sources import read_rows
from glassformer.data.splits import content_key, part_of, split_names
from glassformer.errors import GlassformerError

LOOKED_AT = 200  # rows by which columns are guessed


@dataclass(slots=True)
class Skipped:
    """Rows left out for one reason: how many, and the first of them."""

    count: int
    first: str


@dataclass(slots=True)
class Taken:
    """What came in: columns by role, rows by part, and what was left out, by reason."""

    columns: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def skip(self, reason: str, row: Row) -> None:
        """Leave a row out."""
        self.skipped.setdefault(reason, Skipped(0, row.where)).count += 1


Seen = Callable[[int], None]


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
    taken = Taken()
    given = {"train": config.files, "valid": config.valid, "test": config.test}
    if not any(given.values()):
        raise GlassformerError("no data given; name a file, a folder or a set of the catalog")

    def samples() -> Iterator[tuple[str, Sample]]:
        number = 0
        for part, names in given.items():
            for name in names:
                for row in rows_of(name, config, roles, taken):
                    number += 1
                    if seen is not None and number % 1000 == 0:
                        seen(number)
                    sample = _sample(row, taken, roles)
                    if sample is not None:
                        chosen = _part(part, row, sample, config, taken, seed)
                        taken.counts[chosen] = taken.counts.get(chosen, 0) + 1
                        yield chosen, sample

    folder.mkdir(parents=True, exist_ok=True)
    stored = Samples.write(folder, samples())
    _refuse_nothing(taken, config)
    return stored, taken


def rows_of(name: str, config: DataConfig, roles: Sequence[str], taken: Taken) -> Iterator[Row]:
    """The rows of a file, a folder or a set of the catalog; their columns are noted in `taken`."""
    path = Path(name)
    if path.exists() or name not in CATALOG:
        rows = read_rows(path, encoding=config.encoding)
    else:
        rows = open_entry(name).rows()
    head = list(islice(rows, LOOKED_AT))
    wanted = [*roles, *(["group"] if config.group else []), "split?"]
    given = dict(config.columns) | ({"group": config.group} if config.group else {})
    taken.columns = find_columns(head, wanted, given)
    return chain(head, rows)


def _sample(row: Row, taken: Taken, roles: Sequence[str]) -> Sample | None:
    """What is kept of a row; None when it lacks something."""
    sample: Sample = {"where": row.where}
    for role in roles:
        name = role.removesuffix("?")
        if name not in taken.columns:
            continue
        value = row[taken.columns[name]]
        if isinstance(value, str) and not value.strip() and name == role:
            taken.skip(f"empty {name}", row)
            return None
        sample[name] = value
    if "group" in taken.columns:
        sample["group"] = row[taken.columns["group"]]
    return sample


def _part(
    given: str, row: Row, sample: Mapping[str, str], config: DataConfig, taken: Taken, seed: int
) -> str:
    """The part a sample belongs to."""
    if given != "train":
        return given
    if "split" in taken.columns and (said := row[taken.columns["split"]]):
        part = split_names(said, row.where)
        if part != "train":
            return part
        shares = {"valid": config.valid_share}
    else:
        shares = {"valid": config.valid_share, "test": config.test_share}
    shares = {
        part: share
        for part, share in shares.items()
        if share and not (config.valid if part == "valid" else config.test)
    }
    group = sample.get("group")
    key = str(group) if group else content_key(" ".join(map(str, _content(sample))))
    return part_of(key, shares, seed)


def _content(sample: Mapping[str, object]) -> list[object]:
    """What makes two samples duplicates: what is read, not the label."""
    return [value for role, value in sample.items() if role not in ("where", "label", "group")]


def _refuse_nothing(taken: Taken, config: DataConfig) -> None:
    """Training needs rows, and rows held out to choose by."""
    read = sum(taken.counts.values())
    why = "; ".join(f"{s.count} with {r}" for r, s in taken.skipped.items())
    if not read or (config.files and not taken.counts.get("train")):
        raise GlassformerError(
            f"{', '.join(config.files or config.test)}: no row to use "
            f"({why or 'all were held out'}); check the columns, or name them with --columns"
        )
    wants_valid = config.files and (config.valid_share > 0 or config.valid)
    if wants_valid and not taken.counts.get("valid"):
        raise GlassformerError(
            f"{', '.join(config.files)}: {read} rows are too few to hold some out for validation; "
            f"add rows, or give them with --valid"
        )
