"""`glassformer bench features`: both sides compute the same, and the report says how fast."""

import json

import numpy as np
import pytest
import torch

from glassformer.benchmarks import features, peers, timing
from glassformer.cli import main

LINE = ["bench", "features", "--rounds", "1"]


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(features, "CASES", ((1, 1), (3, 1)))
    monkeypatch.setattr(timing, "WARM_UPS", 1)


def test_both_sides_compute_the_same_features():
    pytest.importorskip(features.LIBRARY)
    ours, theirs = features.work_of(3, 1, torch.device("cpu"))
    np.testing.assert_allclose(ours(), np.stack(theirs()), atol=3e-3)


def test_the_report_has_ratios_and_how_much_faster_than_real_time_ours_is(capsys):
    pytest.importorskip(features.LIBRARY)
    assert main([*LINE, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [pair["case"] for pair in found["features"]] == ["recordings: 1", "recordings: 3"]
    assert found["machine"]["threads"] == 1
    seconds = found["features"][1]["time"]["ours"]
    assert found["notes"][-1] == f"3 x 1 s of sound: {3 / seconds:,.0f} times real time"
    assert main(LINE) == 0
    assert "kaldi-native-fbank" in capsys.readouterr().out


def test_without_the_other_library_there_is_nothing_to_compare_with(monkeypatch, capsys):
    monkeypatch.setattr(features, "installed", lambda name: peers.installed(f"no_{name}"))
    assert main(LINE) == 1
    assert "pip install 'glassformer[bench]'" in capsys.readouterr().err
