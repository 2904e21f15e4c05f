"""A classifier may start from vectors of words that are known before training."""

import pytest
import torch
from quick import quickly
from safetensors.torch import load_file
from small_runs import learn, write_reviews

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
