"""A refit trains again on training and validation rows, once these have nothing left to decide."""

import math
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from quick import quickly
from safetensors.torch import load_file
from small_runs import learn, write_reviews

from glassformer.data.samples import Samples
from glassformer.runs import refit
from glassformer.runs.api import resume
from glassformer.runs.display import Display
from glassformer.runs.fit import FitResult
from glassformer.runs.request import TrainRequest
from glassformer.runs.timing import Budget, trainings
from glassformer.runs.variants import base_request
from glassformer.training.setup import TrainSetup

REFIT = "train.refit=true"


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


def test_the_second_training_has_all_labelled_rows_and_as_many_epochs(tmp_path, monkeypatch):
    seen = []
    fit = refit.fit

    def watched(run, display, *budget):
        samples = Samples.open(run.folder.data)
        counts = [len(samples.rows(split)) for split in ("train", "valid", "test")]
        seen.append((counts, run.config.train.steps, run.config.model.ngrams))
        return fit(run, display, *budget)

    monkeypatch.setattr(refit, "fit", watched)
    run = learn(write_reviews(tmp_path / "x.csv", 151), tmp_path / "run", REFIT, steps=7)
    counts = run.folder.intake()["counts"]
    [(rows, steps, ngrams)] = seen
    assert rows == [counts["train"] + counts["valid"], 0, counts["test"]]
    first, _, second = run.report["facts"]["steps"].partition("; then ")
    kept = int(first.rpartition(" ")[2])
    assert second == f"{steps} on all rows"
    assert re.fullmatch(r"\d+s, and \d+s on all rows", run.report["facts"]["training time"])
    assert len(run.report["curves"]["second training loss"]) == steps
    assert (run.folder.path / "refit.jsonl").exists()
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


def test_a_second_training_that_does_not_fit_into_the_time_left_is_left_out(tmp_path, capsys):
    data = write_reviews(tmp_path / "x.csv", 151)
    run = learn(data, tmp_path / "run", steps=7)
    result = SimpleNamespace(
        config=replace(run.config, train=replace(run.config.train, refit=True)),
        task=run.folder.open_task(run.config, run.folder.data),
        steps=7,
        kept=(7,),
        seconds=70.0,
    )
    late = Budget(100.0, started=time.monotonic() - 50)
    setup = TrainSetup(run.config.train, run.config.data, run.machine, 0)
    result = FitResult(**vars(result), model=run.model, setup=setup)
    found = refit.refit(result, run.folder, Display(), late)
    assert "no second training on all rows: 1m1" in capsys.readouterr().err
    assert found.refitted is None
    assert found.config.train.refit is None  # as the report says
    assert run.folder.config().train.refit is None  # and as a resumed run sees it


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
