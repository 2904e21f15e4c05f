"""A translator's batches follow from how much there is to translate."""

import pytest

from glassformer.data.samples import Samples
from glassformer.tasks import JOBS
from glassformer.tasks.translate import suited

ROWS, TARGET = 7, "so viel Text"


@pytest.fixture
def pairs(tmp_path):
    row = {"source": "so much text", "target": TARGET}
    return Samples.write(tmp_path, (("train", row) for _ in range(ROWS)))


def test_many_pairs_are_trained_in_large_batches_on_an_accelerator(pairs, monkeypatch):
    monkeypatch.setattr(suited, "MANY", ROWS * len(TARGET) - 1)
    assert JOBS["translate"].suited(pairs, True, {}) == {"data": {"batch_tokens": suited.LARGE}}
    assert JOBS["translate"].suited(pairs, False, {}) == {}


def test_fewer_pairs_keep_smaller_ones(pairs, monkeypatch):
    monkeypatch.setattr(suited, "MANY", ROWS * len(TARGET))
    assert JOBS["translate"].suited(pairs, True, {}) == {}
