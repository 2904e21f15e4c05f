"""Ratings of films that do not exist, by users with known tastes: what a recommender must recover.

Every genre has a place in a plane, and every film is near that of its genre; a user likes the films
in the direction of their taste. So the expected rating is

    mean + bias of user + bias of film + taste · place

to which noise is added before it is rounded to half stars. Users choose films they are likely to
like, in any order, but a film is often followed by its sequel.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from itertools import product

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.catalog.storage import Entry
from glassformer.data.rows import Row

USERS, RATED = 600, 160
NOISE = 0.6  # standard deviation, in stars
MEAN, LOWEST, HIGHEST = 3.4, 0.5, 5.0
SEQUEL_NEXT = 0.6  # the share of sequels that are watched right after the first part
FIRST_DAY = datetime(2019, 1, 1, 18)
WORDS: dict[str, tuple[str, str]] = {  # by genre, around the plane
    "romance": (
        "Tender Secret Distant Summer Silver First",
        "Letter Kiss Promise Heart Waltz Rose",
    ),
    "comedy": (
        "Crazy Lucky Clumsy Royal Borrowed Double",
        "Uncle Wedding Dentist Neighbour Parrot Moustache",
    ),
    "action": (
        "Iron Final Deadly Midnight Hunted Burning",
        "Bullet Strike Convoy Bridge Fury Fugitive",
    ),
    "horror": (
        "Hollow Crimson Whispering Buried Pale Nameless",
        "Cellar Doll Scarecrow Asylum Fog Mirror",
    ),
    "drama": (
        "Broken Winter Forgotten Patient Absent Bitter",
        "Father Orchard Verdict Silence Widow Inheritance",
    ),
}


@dataclass(frozen=True, slots=True)
class Planted:
    """What the ratings are drawn from.

    Attributes:
        names: Of the films.
        genres: The genre of each film.
        sequel_of: The number of the film that each continues, -1 for none.
        expected: The rating of each film by each user, without noise.
        appeal: How likely each user is to choose each film, as a score.
    """

    names: list[str]
    genres: list[str]
    sequel_of: Int[np.ndarray, " I"]
    expected: Float[np.ndarray, "U I"]
    appeal: Float[np.ndarray, "U I"]


@cache
def planted() -> Planted:
    """The same at every call."""
    names, genres, sequel_of = titles()
    rng = np.random.default_rng(22)
    angle = 2 * np.pi * np.array([list(WORDS).index(genre) for genre in genres]) / len(WORDS)
    places = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    places += rng.normal(0, 0.2, places.shape)
    tastes = rng.normal(0, 0.7, (USERS, 2))
    film_bias, user_bias = rng.normal(0, 0.4, len(names)), rng.normal(0, 0.3, (USERS, 1))
    liking = tastes @ places.T + film_bias
    expected = np.clip(MEAN + user_bias + liking, LOWEST, HIGHEST)
    return Planted(names, genres, sequel_of, expected, liking)


def titles() -> tuple[list[str], list[str], Int[np.ndarray, " I"]]:
    """The names and genres of all films, and which continues which: a quarter has a sequel."""
    names: list[str] = []
    genres: list[str] = []
    sequel_of: list[int] = []
    for genre, (first, second) in WORDS.items():
        for number, (one, two) in enumerate(product(first.split(), second.split())):
            names.append(f"The {one} {two}")
            sequel_of.append(-1)
            if number % 4 == 0:
                names.append(f"{names[-1]} II")
                sequel_of.append(len(names) - 2)
        genres += [genre] * (len(names) - len(genres))
    return names, genres, np.array(sequel_of)


def ratings() -> Iterator[Row]:
    """What each user watched, in order, with the day and the rating."""
    model, rng = planted(), np.random.default_rng(2022)
    number = 0
    for user, expected in enumerate(model.expected):
        chosen = np.argsort(-model.appeal[user] - rng.gumbel(size=len(expected)))[:RATED]
        day = FIRST_DAY + timedelta(days=int(rng.integers(365)))
        for film in in_order(rng.permutation(chosen).tolist(), model.sequel_of, rng):
            number += 1
            day += timedelta(days=int(rng.integers(1, 8)))
            stars = expected[film] + rng.normal(0, NOISE)
            stars = float(np.clip(np.round(2 * stars) / 2, LOWEST, HIGHEST))
            values = {"user": f"user {user + 1}", "film": model.names[film], "rating": f"{stars:g}"}
            yield Row(values | {"date": day.isoformat(" ", "minutes")}, "films", number)


def in_order(
    films: list[int], sequel_of: Int[np.ndarray, " I"], rng: np.random.Generator
) -> list[int]:
    """The films with each sequel after the first part, often right after it."""
    found = list(films)
    for film in films:
        first = int(sequel_of[film])
        if first not in found:
            continue
        if rng.random() < SEQUEL_NEXT:
            found.remove(film)
            found.insert(found.index(first) + 1, film)
        elif found.index(film) < found.index(first):
            a, b = found.index(film), found.index(first)
            found[a], found[b] = found[b], found[a]
    return found


FILMS = Entry(
    name="films",
    what="96,000 ratings of 225 made-up films of five genres, by users of known taste; built in",
    licence="CC0, made by this program",
    source="https://doi.org/10.1109/MC.2009.263",
    rows=ratings,
)
