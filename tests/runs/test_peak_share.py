"""The share of a GPU's peak is counted on no more rows than training could hold at once."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from glassformer.runs import speed
from glassformer.training.cost import BatchCost


@pytest.mark.parametrize(("micro_batches", "expected"), [(1, 10), (4, 3)])
def test_the_peak_share_runs_one_micro_batch(monkeypatch, micro_batches, expected):
    counted = []

    def batch_cost(model, task, batch, setup):
        counted.append(len(batch))
        return BatchCost(tokens=len(batch), flops=200 * len(batch), activations=0)

    monkeypatch.setattr(speed, "one_epoch", lambda *_: [np.arange(10)])
    monkeypatch.setattr(speed, "batch_cost", batch_cost)
    monkeypatch.setattr(speed, "peak_flops", lambda _: 1000.0)
    task = SimpleNamespace(batch=lambda split, rows, epoch: torch.from_numpy(rows))
    setup = SimpleNamespace(machine=SimpleNamespace(device=torch.device("cpu")))
    progress = SimpleNamespace(micro_batches=micro_batches)
    state = SimpleNamespace(model=nn.Linear(1, 1), progress=progress)
    assert speed.share_of_peak(2.0, state, task, setup) == pytest.approx(0.4)
    assert counted == [expected]
