"""`hf:NAME` or `hf:NAME:CONFIG`: the rows of a Hugging Face dataset, through `datasets`.

Labels become their names, translations one column per language; audio and images are skipped. Code
that comes with a dataset is never executed. Splits with known names (train, validation, test, ...)
are kept, others are skipped; a dataset with a single split is split by us.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from glassformer.data.rows import Row, row_of
from glassformer.data.sources.files import reason
from glassformer.data.splits import SPLIT_NAMES
from glassformer.errors import GlassformerError, install

PREFIX = "hf:"
READABLE = ("Value", "ClassLabel", "Sequence", "List", "LargeList", "Translation")


def read_hub(name: str) -> Iterator[Row]:
    """The rows of a dataset, split by split; `name` as typed."""
    splits = _load(name)
    known = {split: rows for split, rows in splits.items() if split.casefold() in SPLIT_NAMES}
    if len(splits) > 1 and not known:
        raise GlassformerError(
            f"{name}: its splits are {', '.join(splits)}, none is train, validation or test; "
            f"save the one you want as a file"
        )
    for split, rows in known.items() if len(splits) > 1 else splits.items():
        label = split if len(splits) > 1 else ""
        columns = [c for c, kind in rows.features.items() if type(kind).__name__ in READABLE]
        for number, values in enumerate(rows.select_columns(columns), start=1):
            named = _named(values, rows.features) | {"split": label}
            yield row_of(named, f"{name} {split}", number)


def _load(name: str) -> Mapping[str, Any]:
    """The rows of a dataset by split."""
    try:
        import datasets  # type: ignore[import-not-found]
    except ImportError:
        raise GlassformerError(
            f"{name}: needs the package datasets, which is not installed; {install('hub')}"
        ) from None
    dataset, _, config = name.removeprefix(PREFIX).partition(":")
    if not dataset:
        raise GlassformerError(f"{name}: no dataset named; write hf:NAME or hf:NAME:CONFIG")
    try:
        loaded: Mapping[str, Any] = datasets.load_dataset(dataset, config or None)
    except Exception as error:  # from no network to a config that must be chosen
        raise GlassformerError(
            f"{name}: cannot be loaded ({reason(error)[:300]}); check the name, or write "
            f"hf:NAME:CONFIG"
        ) from None
    return loaded


def _named(values: Mapping[str, Any], features: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the names of labels, and a column for each language of a translation."""
    row: dict[str, Any] = {}
    for column, value in values.items():
        kind = features[column]
        if type(kind).__name__ == "ClassLabel":
            row[column] = kind.int2str(value) if value is not None and value >= 0 else ""
        elif type(kind).__name__ == "Translation":
            row |= value or {}
        else:
            row[column] = value
    return row
