"""Rows that were taken for the names of columns, though none of them is a name we know."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from glassformer.data.columns import is_known_name
from glassformer.data.doctor.finding import Finding
from glassformer.data.doctor.reading import Source
from glassformer.data.rows import listed
from glassformer.data.sources.formats import reader_of
from glassformer.data.sources.table import read_table


def header_findings(sources: Sequence[Source]) -> Iterator[Finding]:
    """A note on each table whose first row may be a row like the others."""
    for source in sources:
        path = Path(source.name)
        if not path.is_file() or reader_of(path) is not read_table:
            continue
        names = next(iter(source.open())).values
        numbered = [*names] == [str(place) for place in range(1, len(names) + 1)]
        if not numbered and not any(map(is_known_name, names)):
            yield Finding(
                kind="names of columns",
                severity="note",
                what=f"the first row of {source.name} ({listed(names)}) was taken for the names of "
                f"its columns",
                advice="if it is a row like the others, put a row of names above it",
                count=1,
            )
