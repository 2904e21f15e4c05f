"""On a CPU, a run predicts with a prepacked twin of a wide model, and its model stays as it is."""

import pytest
import torch
from quick import quickly
from small_translators import translate, write_pairs

from glassformer.core.prepacked import can_prepack
from glassformer.models import packing
from glassformer.models.packing import PackedLinear
from glassformer.runs import api


@pytest.mark.skipif(not can_prepack(torch.ones(2, 2)), reason="needs oneDNN")
@pytest.mark.usefixtures("without_shape_hook")
def test_a_run_predicts_by_the_twin_what_its_model_predicts(tmp_path, monkeypatch):
    with quickly():
        translate(write_pairs(tmp_path / "pairs.tsv"), tmp_path / "run")
    texts, used = ["abcd", "fa", "bbbbb"], []
    expected = api.load(tmp_path / "run", device="cpu").predict(texts)

    forward = PackedLinear.forward
    monkeypatch.setattr(PackedLinear, "forward", lambda self, x: used.append(1) or forward(self, x))
    monkeypatch.setattr(packing, "WIDE", 1)
    run = api.load(tmp_path / "run", device="cpu")
    assert [found.text for found in run.predict(texts)] == [one.text for one in expected]
    assert used
    assert not any(isinstance(part, PackedLinear) for part in run.model.modules())
