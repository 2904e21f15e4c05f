"""How far a benchmark is: a bar with the time left in a terminal, elsewhere one sentence."""

from itertools import count

import pytest

from glassformer.cli import bench_progress
from glassformer.cli.bench_progress import BenchProgress


@pytest.fixture
def _minutes(monkeypatch):
    """A clock that moves by a minute whenever it is read."""
    clock = count(step=60)
    monkeypatch.setattr(bench_progress, "monotonic", lambda: float(next(clock)))
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)


def measured(total):
    with BenchProgress(total) as progress:
        for number in range(total):
            progress.begin(f"work {number}")
            progress.finish()


@pytest.mark.usefixtures("_minutes")
def test_outside_of_a_terminal_a_long_benchmark_says_once_how_long_it_takes(capsys):
    measured(7)
    out, err = capsys.readouterr()
    assert out == ""
    assert " ".join(err.split()) == (
        "1 of 7 measurements are done; the others take about 6 minutes, or longer. "
        "Ctrl-C stops and shows what there is."
    )


@pytest.mark.usefixtures("_minutes")
def test_two_minutes_are_not_worth_a_word(capsys):
    measured(3)
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("_minutes")
def test_a_terminal_has_a_bar_with_the_time_left(monkeypatch, capsys):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    measured(7)
    err = capsys.readouterr().err
    assert "work 6" in err
    assert "left" in err
    assert "minutes" not in err
