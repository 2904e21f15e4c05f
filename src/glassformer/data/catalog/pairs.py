"""Files whose lines are each other's translations, as rows with source and target."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from glassformer.data.rows import Row
from glassformer.data.sources.decoding import lines
from glassformer.errors import GlassformerError


def parallel_lines(source: Path, target: Path, *, split: str) -> Iterator[Row]:
    """A row a line; two files of different length do not belong together."""
    sides = (lines(path, newline="\n") for path in (source, target))
    for number, (one, other) in enumerate(zip_longest(*sides), start=1):
        if one is None or other is None:
            short, long = (source, target) if one is None else (target, source)
            raise GlassformerError(
                f"{short}: ends after line {number - 1}, {long.name} does not; take both files "
                f"from one place"
            )
        values = {"source": one.strip(), "target": other.strip(), "split": split}
        yield Row(values, str(source), number)
