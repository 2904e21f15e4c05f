"""Film reviews of the Internet Movie Database: is the writer pleased? Maas et al., 2011.

Reviews of one film fall together in `film`: a validation part must not share films with the rest.
"""

from collections.abc import Iterator

from glassformer.data.catalog.entry import Entry, data_file
from glassformer.data.rows import Row
from glassformer.data.sources import read_rows
from glassformer.errors import GlassformerError

FILMS = "films.tsv.gz"
WITHOUT_LABEL = "unsup"


def labelled() -> Iterator[Row]:
    """25,000 reviews to learn from and 25,000 to be tested on, half of each positive."""
    for split in ("train", "test"):
        for row, film in _reviews(split):
            columns = {"text": row["text"], "label": row["label"], "split": split, "film": film}
            yield Row(columns, row.file, row.number)


def unlabelled() -> Iterator[Row]:
    """50,000 reviews more, to read only."""
    for row, film in _reviews(WITHOUT_LABEL):
        yield Row({"text": row["text"], "film": film}, row.file, row.number)


def _reviews(part: str) -> Iterator[tuple[Row, str]]:
    """The rows of one file, each with its film."""
    reviews = data_file("imdb", f"{part}.jsonl.gz")
    films = {
        (row["label"], row["id"]): row["film"]
        for row in read_rows(data_file("imdb", FILMS))
        if row["split"] == part
    }
    for row in read_rows(reviews):
        film = films.get((row["label"] or WITHOUT_LABEL, row["id"]))
        if film is None:
            raise GlassformerError(
                f"{row.where}: review {row['id']!r} is not in {FILMS}; the files do not belong "
                f"together, take all of them from one place"
            )
        yield row, film


_LICENCE = "none stated; the authors ask to be cited (Maas et al., ACL 2011)"
_SOURCE = "https://ai.stanford.edu/~amaas/data/sentiment/"

IMDB = Entry(
    name="imdb",
    what="50,000 film reviews, positive or negative",
    licence=_LICENCE,
    source=_SOURCE,
    rows=labelled,
    group="film",
)
UNLABELLED = Entry(
    name="imdb-unlabelled",
    what="50,000 film reviews without a label, for pretraining",
    licence=_LICENCE,
    source=_SOURCE,
    rows=unlabelled,
    group="film",
)
