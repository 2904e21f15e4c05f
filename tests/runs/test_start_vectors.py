"""A classifier may start from vectors of words that are known before training."""

import pytest
import torch
from quick import quickly
from safetensors.torch import load_file
from small_runs import learn, write_reviews
from torch import nn

from glassformer.errors import GlassformerError
from glassformer.tasks.classify.word_vectors import word_vectors

PPMI = "task.vectors=ppmi"


@pytest.mark.parametrize("frontend", ["tokens", "ngrams"])
def test_a_classifier_starts_from_them_and_trains_on(frontend, tmp_path, monkeypatch):
    seen = []

    def watched(*args, **options):
        seen.append(word_vectors(*args, **options))
        return seen[-1]

    monkeypatch.setattr("glassformer.tasks.classify.task.word_vectors", watched)
    settings = (PPMI, f"model.frontend.kind={frontend}", "train.refit=true")
    with quickly():
        run = learn(write_reviews(tmp_path / "x.csv", 151), tmp_path / "run", *settings, steps=5)
    [(vectors, known)] = seen  # the second training starts from the same
    table = load_file(run.folder.initial)["frontend.table.weight"]
    torch.testing.assert_close(table[known], vectors[known])
    others = torch.ones(len(table), dtype=torch.bool)
    others[known] = False
    assert others.any()  # such as padding, which keep what they had
    assert not torch.equal(load_file(run.folder.model)["frontend.table.weight"], table)


def test_every_member_of_an_ensemble_starts_from_them(tmp_path):
    settings = (PPMI, "model.members=2")
    with quickly():
        run = learn(write_reviews(tmp_path / "x.csv"), tmp_path / "run", *settings, steps=1)
    first, second = (
        load_file(run.folder.initial)[f"frontend.members.{n}.table.weight"] for n in range(2)
    )
    shared = (first == second).all(1)
    assert 2 < shared.sum() < len(first)  # the others start at random


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"pretrain": True, "set": (PPMI, "pretrain=yes")}, "task.vectors both set the initial"),
        ({"model": lambda task: nn.Linear(2, 2), "set": (PPMI,)}, "no effect on your own model"),
    ],
    ids=["pretraining", "own model"],
)
def test_weights_that_come_from_elsewhere_are_not_replaced(given, message, tmp_path):
    with pytest.raises(GlassformerError, match=message):
        learn(write_reviews(tmp_path / "x.csv"), tmp_path / "run", **given)


def test_another_run_gives_its_own_vectors(tmp_path):
    data = write_reviews(tmp_path / "x.csv")
    with quickly():
        learn(data, tmp_path / "first", steps=1)
    with pytest.raises(GlassformerError, match="first both set the initial weights; drop one"):
        learn(data, tmp_path / "run", PPMI, from_=tmp_path / "first")


def test_no_trial_of_pretraining_replaces_them(tmp_path):
    with quickly():
        run = learn(write_reviews(tmp_path / "x.csv", 151), tmp_path / "run", PPMI, pretrain=True)
    assert run.config.pretrain == "no"
