"""Ingest: from raw files to samples in splits, in one pass; `splitter` chooses each row's split.

Incomplete rows are skipped and counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from glassformer.config import DataConfig
from glassformer.data.catalog import CATALOG
from glassformer.data.catalog.hub import PREFIX, read_hub
from glassformer.data.columns import GROUP, SPLIT, Columns, Role, find_by_name, runners_up
from glassformer.data.in_memory import read_held
from glassformer.data.rows import CONTINUED, InMemory, Row
from glassformer.data.samples import SPLITS, Sample, Samples
from glassformer.data.schema import Schema
from glassformer.data.sources import read_rows
from glassformer.data.sources.files import kind_of, names_in
from glassformer.data.sources.formats import reader_named, reader_of
from glassformer.data.sources.table import form_of, read_table
from glassformer.data.splits import SPLIT_NAMES
from glassformer.data.splitter import ENOUGH_GROUPS, IngestReport, Splitter
from glassformer.errors import GlassformerError

LOOKED_AT = 200  # rows used to guess the columns

Seen = Callable[[int], None]


def ingest(
    config: DataConfig, schema: Schema, folder: Path, *, seed: int = 0, seen: Seen | None = None
) -> tuple[Samples, IngestReport]:
    """Read all files of a configuration into samples.

    Args:
        seen: Called now and then with the number of rows read.
    """
    given, report = names_by_split(config, schema), IngestReport()
    report.tables = tables_in_folders(given, config)
    splitter = Splitter(config, schema, seed)

    def samples() -> Iterator[tuple[str, Sample]]:
        number = 0
        for source_split, names in given.items():
            for name in names:
                rows, columns, others, unread = open_rows(name, config, schema, source_split)
                if not report.columns:
                    report.runners_up, report.unread = others, unread
                report.note(name, columns, header_of(name, config, schema))
                for row in rows:
                    number += 1
                    for loss in row.losses:
                        report.lose(loss, row.where)
                    if seen is not None and number % 1000 == 0:
                        seen(number)
                    sample, fault = schema.sample(row, columns)
                    if fault:
                        report.skip(fault, row.where)
                        continue
                    split = splitter.split_for(source_split, row, columns, sample, report)
                    if split is not None:
                        yield split, sample

    folder.mkdir(parents=True, exist_ok=True)
    if config.header is not None and config.files:
        refuse_header(given, config, schema)
    stored = splitter.finalise(Samples.write(folder, samples()), report)
    refused = splitter.refusal(report)
    if refused is not None:
        names = ", ".join([*config.files, *config.valid, *config.test])
        raise GlassformerError(f"{names}: {'; '.join(refused)}")
    return stored, report


def names_by_split(config: DataConfig, schema: Schema) -> dict[str, list[str]]:
    """The sources of each split."""
    given = dict(zip(SPLITS, (config.files, config.valid, config.test), strict=True))
    if not any(given.values()):
        raise GlassformerError("no data given; name a file, a folder or a named data set")
    return {split: schema.arrange(names) for split, names in given.items()}


def tables_in_folders(given: Mapping[str, Sequence[str]], config: DataConfig) -> dict[str, str]:
    """The table that is read in place of a folder, by folder."""
    named = {*config.files, *config.valid, *config.test}
    folders = {str(Path(name)): str(name) for name in named if not isinstance(name, InMemory)}
    others = [name for names in given.values() for name in names if name not in named]
    return {folders[place]: name for name in others if (place := str(Path(name).parent)) in folders}


class OpenedSource(NamedTuple):
    """The rows of a source, and which of its columns are read.

    Attributes:
        columns: Columns by role.
        runners_up: Columns that fit a role as well.
        unread: Columns without a role.
    """

    rows: Iterator[Row]
    columns: Columns
    runners_up: Columns
    unread: list[str]


def open_rows(name: str, config: DataConfig, schema: Schema, source_split: str) -> OpenedSource:
    """Open a source, and find its columns in its first rows.

    Args:
        source_split: The split of the source. Rows are held out of `train` only, by groups; in
            others, groups are the units of intervals, where the column is there.
    """
    rows, given, more = rows_of(name, config, schema), dict(config.columns), [SPLIT]
    head = list(islice(rows, LOOKED_AT))
    group = config.group or given.pop("group", None) or _default_group(name)
    if source_split == "train":
        group = group or schema.group_column(name, config)
        group = group or _group_by_name(name, config, schema, head)
    else:
        given.pop("split", None)
        group = group if any(group in row.values for row in head) else None
        group = group or _group_by_name(name, config, schema, head)
    given, more = (given | {"group": group}, [GROUP, SPLIT]) if group else (given, more)
    columns = schema.find_columns(head, given, *more)
    if "split" in columns and "split" not in given and not _splits(head, columns["split"]):
        del columns["split"]
    others = runners_up(head, schema.roles, config.columns, columns)
    every = dict.fromkeys(column for row in head for column in row.values)
    unread = [column for column in every if column not in {*columns.values(), CONTINUED}]
    return OpenedSource(chain(head, rows), columns, others, unread)


def rows_of(name: str, config: DataConfig, schema: Schema) -> Iterator[Row]:
    """The rows of a layout of the job's own, a file, a folder, a set of the catalog, or a list.

    Columns that are named in the configuration tell a header from a row.
    """
    if isinstance(name, InMemory):
        return read_held(name, schema.roles)
    own, path = schema.open(name, config), Path(name)
    if own is not None:
        return own
    if name.startswith(PREFIX) and not path.exists():
        return read_hub(name)
    if path.exists() or name not in CATALOG:
        _refuse_nearly_named(path)
        names = names_asked_for(config)
        return read_rows(path, encoding=config.encoding, header=config.header, names=names)
    return CATALOG[name].rows()


def names_asked_for(config: DataConfig) -> set[str]:
    """The columns that a configuration names."""
    return {*config.columns.values(), *([config.group] if config.group else [])}


def header_of(name: str, config: DataConfig, schema: Schema) -> bool | None:
    """Whether the first row of a text table is its header; None for data of another kind.

    In a folder of tables, the first of them.
    """
    path = Path(name)
    if isinstance(name, InMemory) or not path.exists():
        return None
    if schema.open(name, config) is not None:
        return None
    if path.is_dir():
        inner = [path / one for one in names_in(path)]
        if not all(one.is_file() and reader_named(one) is read_table for one in inner):
            return None
        path = inner[0]
    elif reader_of(path) is not read_table:
        return None
    names = names_asked_for(config)
    return form_of(path, config.encoding, header=config.header, names=names).header


def _default_group(name: str) -> str | None:
    """The group column of a set of the catalog."""
    return CATALOG[name].group if name in CATALOG and not Path(name).exists() else None


def _group_by_name(
    name: str, config: DataConfig, schema: Schema, head: Sequence[Row]
) -> str | None:
    """A column that holds rows together by its name, if it has enough different values."""
    columns = dict.fromkeys(column for row in head for column in row.values)
    free = [column for column in columns if column not in config.columns.values()]
    column = find_by_name(free, [Role(name="group", names=schema.groups)]).get("group")
    if column is None:
        return None
    values = set[str]()
    for row in rows_of(name, config, schema):
        values.add(str(row[column]))
        if len(values - {""}) == ENOUGH_GROUPS:
            return column
    return None


def refuse_header(given: Mapping[str, Sequence[str]], config: DataConfig, schema: Schema) -> None:
    """Refuse to be told of a header where nothing that is read could have one."""
    names = [name for some in given.values() for name in some]
    if all(header_of(name, config, schema) is None for name in names):
        raise GlassformerError(
            f"--header says how text tables are read, such as CSV, and {', '.join(names)} is none; "
            f"leave it out"
        )


def is_file(name: str) -> bool:
    """Whether this is a file, which must exist, rather than a folder or a named set."""
    path = Path(name)
    if isinstance(name, InMemory):
        return False
    if not path.exists() and (name in CATALOG or name.startswith(PREFIX)):
        return False
    _refuse_nearly_named(path)
    return kind_of(path) == "file"


def _splits(head: Sequence[Row], column: str) -> bool:
    """Whether a column names splits: `split` if any of its values does, a `subset` if all do."""
    values = {str(row[column]).strip().casefold() for row in head} - {""}
    if column.strip().casefold() == "split" and values & set(SPLIT_NAMES):
        return True
    return values <= set(SPLIT_NAMES)


def _refuse_nearly_named(path: Path) -> None:
    """Refuse a misspelt name of a set, rather than call it a missing file."""
    near = get_close_matches(str(path), CATALOG, n=1)
    if near and not path.exists():
        raise GlassformerError(f"{path}: not found; did you mean the data set {near[0]!r}?")
