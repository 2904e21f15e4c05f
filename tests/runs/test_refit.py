"""A refit trains again on training and validation rows, once these have nothing left to decide."""

import math

import pytest
import torch
from quick import quickly
from safetensors.torch import load_file
from small_runs import learn, write_reviews

from glassformer.data.samples import Samples
from glassformer.runs import refit
from glassformer.runs.api import resume
from glassformer.runs.request import TrainRequest
from glassformer.runs.timing import trainings
from glassformer.runs.variants import base_request

REFIT = "train.refit=true"


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


def test_the_second_training_has_all_labelled_rows_and_as_many_epochs(tmp_path, monkeypatch):
    seen = []
    fit = refit.fit

    def watched(run, display):
        samples = Samples.open(run.folder.data)
        counts = [len(samples.rows(split)) for split in ("train", "valid", "test")]
        seen.append((counts, run.config.train.steps, run.config.model.ngrams))
        return fit(run, display)

    monkeypatch.setattr(refit, "fit", watched)
    run = learn(write_reviews(tmp_path / "x.csv", 151), tmp_path / "run", REFIT, steps=7)
    counts = run.folder.intake()["counts"]
    [(rows, steps, ngrams)] = seen
    assert rows == [counts["train"] + counts["valid"], 0, counts["test"]]
    kept = int(run.report["facts"]["steps"].rpartition(" ")[2])
    assert steps == math.ceil(kept * rows[0] / counts["train"])
    assert ngrams == "no"  # those of the run have learned these rows already
    assert any(f"together, for {steps} steps" in note for note in run.report["notes"])
    assert not (run.folder.path / "refit").exists()
    samples = Samples.open(run.folder.data)
    assert len(samples.rows("valid")) == counts["valid"]


def test_the_model_is_that_of_the_second_training(tmp_path):
    data = write_reviews(tmp_path / "x.csv", 151)
    plain = learn(data, tmp_path / "plain", steps=7)
    again = learn(data, tmp_path / "again", REFIT, steps=7)
    before, after = (load_file(run.folder.model) for run in (plain, again))
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_a_run_interrupted_before_or_in_it_ends_as_if_nothing_had_happened(tmp_path, monkeypatch):
    data = write_reviews(tmp_path / "x.csv", 151)
    whole = learn(data, tmp_path / "whole", REFIT, steps=7)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(refit, "fit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            learn(data, tmp_path / "run", REFIT, steps=7)
    assert (tmp_path / "run" / "refit").exists()
    with monkeypatch.context() as patch:
        patch.setattr(refit.os, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            resume(tmp_path / "run", quiet=True)
    resumed = resume(tmp_path / "run", quiet=True)
    first, second = (load_file(run.folder.model) for run in (whole, resumed))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_without_test_rows_it_is_left_out_and_says_so(tmp_path, capsys):
    data = write_reviews(tmp_path / "x.csv", 151)
    learn(data, tmp_path / "run", REFIT, "data.test_share=0", steps=3, quiet=False)
    assert "not trained again on all rows: there are no test rows" in capsys.readouterr().err


def test_a_time_budget_has_room_for_both_and_a_comparison_has_one(tmp_path):
    data = str(write_reviews(tmp_path / "x.csv", 151))
    request = TrainRequest(job="classify", data=(data,), settings=(REFIT,))
    assert trainings(request.resolve()) == pytest.approx(1 + 0.9 / 0.8)
    more_rows = TrainRequest(job="classify", data=(data,), settings=(REFIT, "data.valid_share=0.3"))
    assert trainings(more_rows.resolve()) == pytest.approx(1 + 0.9 / 0.6)
    plain = TrainRequest(job="classify", data=(data,))
    assert trainings(plain.resolve()) == 1
    assert base_request(plain).values["train"]["refit"] is False
