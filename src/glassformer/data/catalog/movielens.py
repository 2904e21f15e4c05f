"""MovieLens: ratings of films by users of a web site. Harper and Konstan, 2015.

An item is the title of a film; where two films have the same title, it ends in their number. The
terms allow research, but neither redistribution nor commercial use without permission.
"""

import io
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from glassformer.data.catalog.archives import members
from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import Row
from glassformer.errors import GlassformerError

ENCODING = "latin-1"
LICENCE = "research use, no redistribution; see the README in the archive"
SOURCE = "https://grouplens.org/datasets/movielens/"
COLUMNS = ("user", "film", "rating", "timestamp")
LAYOUTS = {  # archive: ratings, films, separators
    "ml-100k.zip": (("u.data", "\t"), ("u.item", "|")),
    "ml-1m.zip": (("ratings.dat", "::"), ("movies.dat", "::")),
}

# The MD5 sums are as GroupLens publishes them beside the archives, and as many other programs check
# them after fetching (PaddlePaddle for 1M); we have not seen the files ourselves.
STORAGE_100K = Storage(
    "movielens",
    (("ml-100k.zip",),),
    (
        Remote(
            name="ml-100k.zip",
            url="https://files.grouplens.org/datasets/movielens/ml-100k.zip",
            size=4_924_029,
            checksum="md5:0e33842e24a9c977be4e0107933c0723",
        ),
    ),
)
STORAGE_1M = Storage(
    "movielens",
    (("ml-1m.zip",),),
    (
        Remote(
            name="ml-1m.zip",
            url="https://files.grouplens.org/datasets/movielens/ml-1m.zip",
            checksum="md5:c4d9eecfca2ab87c1945afe126590906",
        ),
    ),
)


def rated_films(name: str, storage: Storage) -> Iterator[Row]:
    """The ratings of an archive, in its order."""
    [(archive, path)] = storage.files(name).items()
    (ratings, mark), films = LAYOUTS[archive]
    found = {Path(member).name: content for member, content in members(path)}
    titles = named_films(path, found, *films)
    for number, line in enumerate(_lines(path, found, ratings), start=1):
        fields = line.split(mark)
        if len(fields) != len(COLUMNS) or fields[1] not in titles:
            raise GlassformerError(
                f"{path}: line {number} of {ratings} is {line[:40]!r} instead of a rating of a "
                f"film; fetch it again"
            )
        values = dict(zip(COLUMNS, fields, strict=True)) | {"film": titles[fields[1]]}
        yield Row(values, f"{path}/{ratings}", number)


def named_films(archive: Path, found: dict[str, bytes], file: str, mark: str) -> dict[str, str]:
    """The title of each film, by its number in the archive."""
    pairs = [line.split(mark)[:2] for line in _lines(archive, found, file)]
    times = Counter(title for _, title in pairs)
    return {key: title if times[title] == 1 else f"{title} #{key}" for key, title in pairs}


def _lines(archive: Path, found: dict[str, bytes], file: str) -> Iterator[str]:
    if file not in found:
        raise GlassformerError(f"{archive}: has no {file}; fetch it again")
    return (line.rstrip("\r\n") for line in io.StringIO(found[file].decode(ENCODING), newline="\n"))


MOVIELENS = (
    Entry(
        name="movielens-100k",
        what="100,000 ratings of 1,682 films by 943 users; GroupLens, 1998",
        licence=LICENCE,
        source=f"{SOURCE}100k/",
        rows=partial(rated_films, "movielens-100k", STORAGE_100K),
        storage=STORAGE_100K,
    ),
    Entry(
        name="movielens-1m",
        what="1,000,209 ratings of 3,706 films by 6,040 users; GroupLens, 2003",
        licence=LICENCE,
        source=f"{SOURCE}1m/",
        rows=partial(rated_films, "movielens-1m", STORAGE_1M),
        storage=STORAGE_1M,
    ),
)
