"""Ratings of films: made up from a planted taste, or read from MovieLens archives."""

import zipfile
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from glassformer.data.catalog import CATALOG, movielens
from glassformer.data.catalog.films import NOISE, RATED, USERS, in_order, planted
from glassformer.errors import GlassformerError


@pytest.fixture(scope="module")
def films():
    return list(CATALOG["films"].rows())


def test_every_user_rates_some_films_once_in_order(films):
    assert len(films) == USERS * RATED
    pairs = Counter((row["user"], row["film"]) for row in films)
    assert pairs.most_common(1)[0][1] == 1
    dates = [row["date"] for row in films if row["user"] == "user 7"]
    assert dates == sorted(dates)
    assert {row["rating"] for row in films} <= {f"{n / 2:g}" for n in range(1, 11)}


def test_ratings_are_the_planted_ones_with_noise(films):
    model = planted()
    numbers = {name: n for n, name in enumerate(model.names)}
    assert len(numbers) == len(model.names) == len(model.genres) == 225
    errors = [
        model.expected[int(row["user"].split()[1]) - 1, numbers[row["film"]]] - float(row["rating"])
        for row in films
    ]
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(NOISE, rel=0.05)


def test_sequels_follow_the_first_part_often_at_once(films):
    seen = [(a["film"], b["film"]) for a, b in pairwise(films) if a["user"] == b["user"]]
    at_once = sum(b == f"{a} II" for a, b in seen)
    assert at_once > 0.3 * sum(row["film"].endswith(" II") for row in films)
    rng = np.random.default_rng(0)
    for _ in range(20):
        order = in_order([3, 1, 0, 2], np.array([-1, 0, -1, 2]), rng)
        assert order.index(0) < order.index(1)
        assert order.index(2) < order.index(3)


ARCHIVES = {
    "movielens-100k": (
        "ml-100k.zip",
        {
            "ml-100k/u.data": "1\t10\t5\t874965758\n2\t11\t3\t876893171\n2\t12\t1\t878542960\n",
            "ml-100k/u.item": "10|Caf\xe9 (1995)|1995||\n11|Twice (1990)|\n12|Twice (1990)|\n",
        },
    ),
    "movielens-1m": (
        "ml-1m.zip",
        {
            "ml-1m/ratings.dat": "1::10::5::978300760\n2::11::3::978302109\n2::12::1::978301968\n",
            "ml-1m/movies.dat": "10::Caf\xe9 (1995)::D\n11::Twice (1990)::X\n12::Twice (1990)::Y\n",
        },
    ),
}


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """Writes an archive where the catalog looks for it."""
    monkeypatch.setenv("GLASSFORMER_DATA", str(tmp_path))

    def write(name, files):
        (tmp_path / "movielens").mkdir(exist_ok=True)
        with zipfile.ZipFile(tmp_path / "movielens" / name, "w") as packed:
            for member, text in files.items():
                packed.writestr(member, text.encode("latin-1"))

    return write


@pytest.mark.parametrize("name", ARCHIVES)
def test_movielens_is_read_with_titles_that_are_unique(name, archive):
    archive(*ARCHIVES[name])
    rows = list(CATALOG[name].rows())
    assert [row["film"] for row in rows] == ["Café (1995)", "Twice (1990) #11", "Twice (1990) #12"]
    assert [row["user"] for row in rows] == ["1", "2", "2"]
    assert [row["rating"] for row in rows] == ["5", "3", "1"]
    assert rows[2].where.endswith("row 3")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ml-100k/u.data": "1\t99\t5\t1\n"}, r"line 1 of u\.data is '1\\t99\\t5\\t1' instead of"),
        ({"ml-100k/u.data": "1\t10\n"}, "instead of a rating of a film; fetch it again"),
    ],
)
def test_a_damaged_archive_is_refused_in_one_line(change, message, archive):
    file, files = ARCHIVES["movielens-100k"]
    archive(file, files | change)
    with pytest.raises(GlassformerError, match=message):
        list(CATALOG["movielens-100k"].rows())
    archive(file, {"ml-100k/u.data": ""})
    with pytest.raises(GlassformerError, match=r"has no u\.item; fetch it again"):
        list(CATALOG["movielens-100k"].rows())


def test_the_checksums_of_movielens_are_published_but_not_verified():
    for entry in movielens.MOVIELENS:
        [remote] = entry.storage.remotes
        assert remote.checksum.startswith("md5:")
        assert not remote.verified
        assert remote.url.startswith("https://files.grouplens.org/")
