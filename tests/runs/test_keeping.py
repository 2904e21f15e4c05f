"""Which weights a run keeps: the best, the last, or the mean of several where that is better."""

import json

import pytest
import torch
from quick import quickly
from small_runs import learn, weights, write_reviews

from glassformer.runs import fit as fitting
from glassformer.training import validation as loop
from glassformer.training.checkpoints import checkpoint_weights


@pytest.fixture(autouse=True)
def _quickly():
    with quickly():
        yield


@pytest.mark.parametrize(("score", "several"), [(1.0, True), (-1.0, False)])
def test_the_mean_of_checkpoints_is_kept_where_it_is_as_good_as_the_best(
    tmp_path, monkeypatch, score, several
):
    asked = ("train.average=3", "train.validate_every=4")
    monkeypatch.setattr(fitting, "validate", lambda *_, **__: {"accuracy": score})
    learn(write_reviews(tmp_path / "x.csv"), tmp_path / "run", *asked, steps=12)
    folder = tmp_path / "run" / "checkpoints"
    state = json.loads((folder / "step-12" / "state.json").read_text())
    best = [step for _, step in state["best"]]
    assert len(best) == 3
    chosen = [checkpoint_weights(folder, step) for step in (best if several else best[:1])]
    for name, tensor in weights(tmp_path / "run").items():
        mean = torch.stack([one[name].double() for one in chosen]).mean(0)
        torch.testing.assert_close(tensor.double(), mean, rtol=1e-5, atol=1e-7)
    facts = json.loads((tmp_path / "run" / "report.json").read_text())["facts"]
    assert facts["steps"].count(",") == 1 + 2 * several


@pytest.mark.parametrize(("wanted", "kept"), [("best", 4), ("last", 12)])
def test_the_last_weights_are_kept_where_they_are_wanted(tmp_path, monkeypatch, wanted, kept):
    scores = iter((0.9, 0.5, 0.7))
    monkeypatch.setattr(loop, "validate", lambda *_, **__: {"accuracy": next(scores)})
    asked = (f"train.weights={wanted}", "train.validate_every=4", "train.ema=0.5")
    run = learn(write_reviews(tmp_path / "x.csv"), tmp_path / "run", *asked, steps=12)
    chosen = checkpoint_weights(tmp_path / "run" / "checkpoints", kept)
    assert all(tensor.equal(chosen[name]) for name, tensor in weights(tmp_path / "run").items())
    assert run.report["facts"]["steps"] == f"12 of 12, kept {kept}"
