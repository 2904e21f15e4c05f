"""Intake: from raw files to samples in parts, in one pass; `parting` says which part a row is in.

Rows that lack something are left out and counted.
"""

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path

from glassformer.config import DataConfig
from glassformer.data.catalog import CATALOG
from glassformer.data.catalog.hub import PREFIX, read_hub
from glassformer.data.columns import find_columns
from glassformer.data.rows import Row
from glassformer.data.samples import SPLITS, Sample, Samples
from glassformer.data.sources import read_rows
from glassformer.data.sources.files import kind_of
from glassformer.data.sources.parallel import pair_files, paired, read_parallel
from glassformer.data.splits import SPLIT_NAMES
from glassformer.data.splitter import LISTS, Columns, IngestReport, Splitter
from glassformer.errors import GlassformerError

LOOKED_AT = 200  # rows by which columns are guessed
PAIR = {"source", "target"}  # roles of a job that reads one text and writes another

Seen = Callable[[int], None]


def ingest(
    config: DataConfig,
    roles: Sequence[str],
    folder: Path,
    *,
    seed: int = 0,
    seen: Seen | None = None,
) -> tuple[Samples, IngestReport]:
    """Read all files of a configuration into samples.

    Args:
        roles: What a sample must have, such as text and label; a `?` marks what it may lack.
        seen: Told now and then how many rows were read.
    """
    given, taken, parting = names_by_part(config, roles), IngestReport(), Splitter(config, seed)

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
    refused = parting.refusal(taken)
    if refused is not None:
        names = ", ".join([*config.files, *config.valid, *config.test])
        raise GlassformerError(f"{names}: {'; '.join(refused)}")
    return stored, taken


def names_by_part(config: DataConfig, roles: Sequence[str]) -> dict[str, Sequence[str]]:
    """What was given for each part. For pairs of texts, every two plain files are one name."""
    given: dict[str, Sequence[str]] = dict(
        zip(SPLITS, (config.files, config.valid, config.test), strict=True)
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


def _sample(row: Row, columns: Columns, roles: Sequence[str], taken: IngestReport) -> Sample | None:
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
