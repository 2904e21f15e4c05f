"""Data with a name. Some is on board, some lies under `$GLASSFORMER_DATA`.

Every row has the columns text, label and split (train, valid or test; empty where the split is yet
to be chosen), and the column that says what must stay together in one split; a set to pretrain on
has no label and no split. To add a set, write a file with an `Entry` and list it in `CATALOG`.
"""

from glassformer.data.catalog.entry import Entry
from glassformer.data.catalog.imdb import IMDB, UNLABELLED
from glassformer.data.catalog.languages import LANGUAGES
from glassformer.errors import GlassformerError, unknown

__all__ = ["CATALOG", "Entry", "open_entry"]


def open_entry(name: str) -> Entry:
    """The set of this name."""
    if name not in CATALOG:
        raise GlassformerError(unknown("data set", name, CATALOG))
    return CATALOG[name]


CATALOG: dict[str, Entry] = {entry.name: entry for entry in (LANGUAGES, IMDB, UNLABELLED)}
