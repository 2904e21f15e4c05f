"""Film reviews of the Internet Movie Database: is the writer pleased? Maas et al., 2011.

`film` groups the reviews of one film: a validation split must not share films with the rest.
Read from the archive as published, or repacked: JSON Lines for each split, and a table of films.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from glassformer.data.catalog.archives import members
from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import Row
from glassformer.data.sources import read_rows
from glassformer.errors import GlassformerError

ARCHIVE = "aclImdb_v1.tar.gz"
FILMS = "films.tsv"
WITHOUT_LABEL = "unsup"
REVIEW = r"aclImdb/(?P<split>train|test)/(?P<label>neg|pos|unsup)/(?P<id>\d+)_\d+\.txt"
ADDRESSES = r"aclImdb/(?P<split>train|test)/urls_(?P<label>neg|pos|unsup)\.txt"

_REMOTE = Remote(
    name=ARCHIVE,
    url="https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
    size=84_125_825,
    checksum="sha256:c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
)
LABELLED_STORAGE = Storage("imdb", (("train.jsonl", "test.jsonl", FILMS), (ARCHIVE,)), (_REMOTE,))
UNLABELLED_STORAGE = Storage("imdb", ((f"{WITHOUT_LABEL}.jsonl", FILMS), (ARCHIVE,)), (_REMOTE,))


def labelled() -> Iterator[Row]:
    """25,000 reviews to learn from and 25,000 to be tested on, half of each positive."""
    files = LABELLED_STORAGE.files("imdb")
    for split in ("train", "test"):
        for row, film in _reviews(files, split):
            columns = {"text": row["text"], "label": row["label"], "split": split, "film": film}
            yield Row(columns, row.file, row.number, row.line)


def unlabelled() -> Iterator[Row]:
    """50,000 reviews more, to read only."""
    for row, film in _reviews(UNLABELLED_STORAGE.files("imdb-unlabelled"), WITHOUT_LABEL):
        yield Row({"text": row["text"], "film": film}, row.file, row.number, row.line)


def _reviews(files: dict[str, Path], split: str) -> Iterator[tuple[Row, str]]:
    """The reviews of a split, each with its film, sorted by label and number."""
    if ARCHIVE in files:
        yield from _from_archive(files[ARCHIVE], split)
        return
    films = {
        (row["label"], row["id"]): row["film"]
        for row in read_rows(files[FILMS])
        if row["split"] == split
    }
    for row in read_rows(files[f"{split}.jsonl"]):
        film = films.get((row["label"] or WITHOUT_LABEL, row["id"]))
        if film is None:
            raise GlassformerError(
                f"{row.where}: review {row['id']!r} is not in {files[FILMS].name}; the files do "
                f"not match, take all of them from one source"
            )
        yield row, film


def _from_archive(archive: Path, split: str) -> Iterator[tuple[Row, str]]:
    """One pass over the archive; the line of a film's address is the number of its review."""
    texts: dict[tuple[str, int], str] = {}
    films: dict[str, list[str]] = {}
    for name, content in members(archive, ".txt"):
        review, addresses = re.fullmatch(REVIEW, name), re.fullmatch(ADDRESSES, name)
        found = review or addresses
        labelled = found is None or found["label"] != WITHOUT_LABEL
        if found is None or split != (found["split"] if labelled else WITHOUT_LABEL):
            continue
        if review:
            texts[review["label"], int(review["id"])] = content.decode()
        else:
            films[found["label"]] = re.findall(r"tt\d+", content.decode())
    for number, (label, identity) in enumerate(sorted(texts), start=1):
        if identity >= len(films.get(label, ())):
            raise GlassformerError(
                f"{archive}: has no URL for review {identity} of {split}/{label}; remove the "
                f"archive and fetch it again"
            )
        row = Row({"text": texts[label, identity], "label": label}, str(archive), number)
        yield row, films[label][identity]


IMDB = Entry(
    name="imdb",
    what="50,000 film reviews, positive or negative",
    licence="none stated; the authors ask to be cited (Maas et al., ACL 2011)",
    source="https://ai.stanford.edu/~amaas/data/sentiment/",
    rows=labelled,
    group="film",
    storage=LABELLED_STORAGE,
)
UNLABELLED = replace(
    IMDB,
    name="imdb-unlabelled",
    what="50,000 film reviews without a label, for pretraining",
    rows=unlabelled,
    storage=UNLABELLED_STORAGE,
)
