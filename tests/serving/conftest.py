"""One server with a run of every kind, and one browser, for all tests of the process."""

import pytest
from browser import Browser
from small_served import Served, small_run

RUNS = (
    *("bottles", "reviews", "gaps", "speech", "sounds", "words", "pictures", "ratings"),
    *("greedy", "drawn", "dictation"),
)


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The folders of small runs, by name."""
    return {name: small_run(name, tmp_path_factory) for name in RUNS}


@pytest.fixture(scope="session")
def served(runs):
    with Served(runs.values()) as server:
        yield server


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()
