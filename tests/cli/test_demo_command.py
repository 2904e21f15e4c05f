"""`glassformer demo`: every embedded job in one go."""

import sys

import pytest

from glassformer.cli import main
from glassformer.cli.demo import program
from glassformer.data.audio.morse import Keying
from glassformer.data.catalog import CATALOG
from glassformer.data.catalog.morse import Clip
from glassformer.runs import demo, fit, recipes
from glassformer.runs.recipes import RECIPES, read_recipe
from glassformer.runs.timing import TooLittleTimeError

RECIPE = """
what = "Good and bad films, in a moment"

[[stage]]
job = "classify"
data = ["FILE"]
steps = 1000
device = "cpu"

[stage.values.data]
batch_tokens = 256

[stage.values.model.encoder]
dim = 8
depth = 1
attention = { heads = 2 }

[stage.values.machine]
threads = 1

[result]
score = "accuracy"
value = 0.5
low = 0.0
high = 1.0
command = "glassformer reproduce films"
commit = "0000000"
machine = "any"
minutes = 0.1
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a small demo, and what it printed."""
    home = tmp_path_factory.mktemp("demo")
    rows = [f"the {mood} film of year {n},{mood}" for n in range(60) for mood in ("good", "bad")]
    (home / "films.csv").write_text("text,label\n" + "\n".join(rows))
    (home / "films.toml").write_text(RECIPE.replace("FILE", str(home / "films.csv")))
    return home


@pytest.fixture
def small(trained, monkeypatch):
    """A demo of two small runs."""
    for name in ("films", "more-films"):
        monkeypatch.setitem(RECIPES, name, trained / "films.toml")
    monkeypatch.setattr(demo, "BUDGETS", {"films": 60, "more-films": 50})
    monkeypatch.setattr(fit, "fitting_trainings", lambda config, *_: (config, 6, []))
    monkeypatch.setattr(fit, "timed_length", lambda *_: None)  # whatever the machine
    monkeypatch.setattr(demo, "EXPLAINED", ("films", "a good film"))
    return trained / "runs"


def test_it_trains_each_job_and_shows_scores_an_explanation_and_the_page(small, capsys):
    assert main(["demo", str(small)]) == 0
    shown, told = capsys.readouterr()
    assert "6 steps fit into 1m00s" in told
    assert "6 steps fit into 50s" in told
    for name in ("films", "more-films"):
        [row] = [line for line in shown.splitlines() if line.startswith(f"│ {name} ")]
        assert "Good and bad films" in row
        assert "accuracy" in row
        assert "n-grams │" in row
    assert "good" in shown.partition("Why does")[2]
    *_, last = shown.splitlines()
    assert last.endswith(f" serve {small / 'films'} {small / 'more-films'}")


def test_a_finished_run_is_kept_and_an_interrupted_one_continues(small, capsys, monkeypatch):
    assert main(["demo", str(small)]) == 0
    (small / "films" / "report.json").unlink()
    monkeypatch.setattr(recipes, "run_training", None)  # nothing starts again
    capsys.readouterr()
    assert main(["demo", str(small)]) == 0
    told = capsys.readouterr().err
    assert f"{small / 'more-films'}: already trained; remove it to train it again" in told
    assert f"{small / 'films'}: already trained" not in told
    assert told.count("parameters, 6 steps on") == 1  # n-grams alone: it has no checkpoints


@pytest.mark.parametrize("enough", [120, 4000])
def test_a_slow_machine_gets_more_time_up_to_a_limit(small, tmp_path, capsys, monkeypatch, enough):
    def too_little(config, costs, budget):
        if budget.seconds >= enough:
            return config, 3, []
        raise TooLittleTimeError("--time 60s is too short")

    monkeypatch.setattr(fit, "fitting_trainings", too_little)
    if enough == 120:
        assert main(["demo", str(tmp_path / "runs")]) == 0
        told = "".join(capsys.readouterr())
        assert "films: this machine is slow or busy, and 60s are too little" in told
        return
    assert main(["demo", str(tmp_path / "runs")]) == 1
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(
        "glassformer: this machine is too slow or too busy to train films in 480s"
    )
    assert told.endswith("glassformer reproduce films")


def test_a_missing_library_is_named_before_anything_is_trained(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "LIBRARIES", ("babel", "no_such_library"))
    assert main(["demo", str(tmp_path / "runs")]) == 1
    told = capsys.readouterr().err
    assert "the demo needs no_such_library, which is not installed; pip install 'glass" in told
    monkeypatch.setattr(demo, "LIBRARIES", ("no_such_library", "nor_this"))
    assert main(["demo", str(tmp_path / "runs")]) == 1
    assert "no_such_library and nor_this, which are not installed; pip" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_the_demo_takes_eight_minutes_at_most_and_needs_no_download():
    assert sum(demo.BUDGETS.values()) <= 7.5 * 60  # the rest is for the explanation
    assert demo.EXPLAINED[0] in demo.BUDGETS
    jobs = set()
    for name in demo.BUDGETS:
        recipe = read_recipe(name)
        [stage] = demo.within(recipe, "9s").stages
        assert (stage.steps, stage.epochs, stage.time) == (None, None, "9s")
        assert stage.values.get("model", {}).get("members", 1) <= 2
        assert recipe.result is not None
        assert CATALOG[stage.data[0]].storage is None
        jobs.add(stage.job)
    assert len(jobs) == 4


def test_the_baseline_of_morse_code_is_an_adaptive_threshold(monkeypatch):
    clean = Clip("PARIS 73", Keying(wpm=20), "a", "test", 5)
    other = Clip("E" * 8, Keying(wpm=20, snr=-20.0), "a", "train", 5)
    monkeypatch.setattr(demo, "clips", lambda: iter([other, clean]))
    assert demo.threshold_errors()["value"] == 0.0


def test_a_program_that_no_shell_finds_is_called_by_its_path(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["env/bin/glassformer", "demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == "env/bin/glassformer"
    (tmp_path / "glassformer").write_text("")
    (tmp_path / "glassformer").chmod(0o755)
    assert program() == "glassformer"
