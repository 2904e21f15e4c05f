"""A learning curve trains on parts of the same rows, and touches nothing of the run."""

import re
import time

import pytest
from quick import quickly
from small_runs import learn, write_reviews

from glassformer.data.samples import Samples
from glassformer.errors import GlassformerError
from glassformer.runs import learning_curve, prepare
from glassformer.runs.display import Display
from glassformer.runs.fit import FitResult
from glassformer.runs.learning_curve import Curve, shares_of
from glassformer.runs.timing import SHARES, Budget
from glassformer.training.setup import TrainSetup


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


def test_the_rows_of_a_smaller_part_are_among_those_of_the_larger(tmp_path):
    learn(write_reviews(tmp_path / "x.csv", 211), tmp_path / "run")
    samples = Samples.open(tmp_path / "run" / "data")
    kept = [set((parts == 0).nonzero()[0].tolist()) for _, parts in shares_of(samples)]
    assert kept[0] < kept[1] < kept[2] < set(samples.rows("train").tolist())
    for (share, parts), rows in zip(shares_of(samples), kept, strict=True):
        assert len(rows) == pytest.approx(share * len(samples.rows("train")), rel=0.5)
        assert ((parts == 1) == (samples.splits == 1)).all()


def test_each_part_is_trained_for_its_share_of_the_steps_and_the_run_stays_as_it_is(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(learning_curve, "FEWEST_STEPS", 4)
    taught = []
    fit = learning_curve.fit

    def watched(run, display, *budget):
        rows = Samples.open(run.folder.data).rows("train")
        taught.append((run.config.train.steps, len(rows)))
        return fit(run, display, *budget)

    monkeypatch.setattr(learning_curve, "fit", watched)
    data = write_reviews(tmp_path / "x.csv", 151)
    learn(data, tmp_path / "plain", steps=16)
    run = learn(data, tmp_path / "run", steps=16, curve=True)
    assert [steps for steps, _ in taught] == [max(4, round(16 * share)) for share in SHARES]
    [table] = [table for table in run.report["tables"] if table["title"] == "Learning curve"]
    rows = [row for row, _ in table["rows"]]
    assert rows == [*(rows for _, rows in taught), run.folder.intake()["counts"]["train"]]
    for name in ("parts.npy", "samples.values.npy", "labels.npy"):
        first, second = ((tmp_path / r / "data" / name).read_bytes() for r in ("plain", "run"))
        assert first == second


def test_points_for_which_no_time_is_left_are_left_out(tmp_path, capsys):
    run = learn(write_reviews(tmp_path / "x.csv", 151), tmp_path / "run", steps=16)
    task = run.folder.open_task(run.config, run.folder.data)
    setup = TrainSetup(run.config.train, run.config.data, run.machine, 0)
    result = FitResult(run.config, task, run.model, setup, seconds=800.0, steps=16, kept=(16,))
    left = Budget(100.0, started=time.monotonic() - 50)
    assert learning_curve.learning_curve(result, run.folder, Display(), left) is None
    assert re.search(r"learning curve without \d+ rows: 1m40s would be", capsys.readouterr().err)


def test_too_few_rows_give_no_curve_and_say_so(tmp_path, capsys):
    data, held = (write_reviews(tmp_path / f"{n}.csv", 11, seed=n) for n in (1, 2))
    run = learn(data, tmp_path / "run", valid=held, test=held, curve=True, quiet=False)
    assert "no learning curve: too few rows to train on a share of them" in capsys.readouterr().err
    assert not [note for note in run.report["notes"] if "twice" in note]


NOTHING_TO_CHOOSE_BY = ("data.valid_share=0", "data.test_share=0.2")


def test_a_curve_without_rows_to_score_on_is_refused_before_anything_is_learned(tmp_path):
    data = write_reviews(tmp_path / "x.csv")
    with pytest.raises(GlassformerError, match="curve needs validation rows; give"):
        learn(data, tmp_path / "run", *NOTHING_TO_CHOOSE_BY, curve=True)
    assert not (tmp_path / "run").exists()


def test_a_run_that_was_begun_so_ends_without_a_curve(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(prepare, "refuse_curve", lambda *_: None)
    data = write_reviews(tmp_path / "x.csv")
    run = learn(data, tmp_path / "run", *NOTHING_TO_CHOOSE_BY, curve=True, quiet=False)
    assert "no learning curve: there are no validation rows" in capsys.readouterr().err
    assert run.report["scores"]


def test_what_more_rows_would_give_is_a_power_law_and_never_worse():
    halved = Curve("accuracy", True, [(100, 0.6), (200, 0.8), (400, 0.9)])
    assert halved.doubled() == pytest.approx(0.05)
    assert halved.sentence().endswith("twice the rows might give 0.950.")
    flat = Curve("accuracy", True, [(100, 0.8), (200, 0.8), (400, 0.7)])
    assert flat.doubled() == pytest.approx(0.3)
    assert flat.sentence().endswith("more rows would hardly help.")
    loss = Curve("loss", False, [(100, 4.0), (200, 2.0)])
    assert loss.sentence().endswith("twice the rows might give 1.000.")
    perfect = Curve("accuracy", True, [(100, 1.0), (200, 1.0)])
    assert perfect.sentence().endswith("more rows would hardly help.")
