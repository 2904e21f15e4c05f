"""Comparing in turns: fair to both, whatever else the machine does."""

import gc
from types import SimpleNamespace

import pytest
import torch

from glassformer.benchmarks import timing
from glassformer.benchmarks.pairs import Pair, measure
from glassformer.benchmarks.timing import compare

CPU = torch.device("cpu")


class Machine:
    """A clock that only work moves, and the log of who worked."""

    def __init__(self):
        self.now, self.log = 0.0, []

    def work(self, name, durations):
        durations = iter(durations)

        def work():
            self.now += next(durations)
            self.log.append(name)

        return work


@pytest.fixture
def machine(monkeypatch):
    machine = Machine()
    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: machine.now))
    monkeypatch.setattr(timing, "SHORTEST", 0.0)
    monkeypatch.setattr(timing, "WARM_UPS", 1)
    return machine


def test_each_round_runs_both_and_the_next_the_other_way_about(machine):
    ours, theirs = machine.work("ours", [1.0] * 9), machine.work("theirs", [1.0] * 9)
    compare(ours, theirs, device=CPU, rounds=3)
    warm_up, rounds = machine.log[:2], machine.log[2:]
    assert sorted(warm_up) == ["ours", "theirs"]
    assert rounds == ["ours", "theirs", "theirs", "ours", "ours", "theirs"]


def test_a_machine_that_slows_down_changes_the_times_but_not_the_ratio(machine):
    slower = [1.0, 1.0, 2.0, 4.0, 8.0, 16.0]
    ours = machine.work("ours", [3.0 * n for n in slower])
    theirs = machine.work("theirs", [2.0 * n for n in slower])
    found = compare(ours, theirs, device=CPU, rounds=5)
    assert (found.ours, found.theirs) == (12.0, 8.0)
    assert (found.low, found.ratio, found.high) == (1.5, 1.5, 1.5)


def test_one_spoilt_round_does_not_spoil_the_ratio(machine):
    ours = machine.work("ours", [1.0, 1.0, 1.0, 70.0, 1.0, 1.0])
    theirs = machine.work("theirs", [2.0] * 6)
    assert compare(ours, theirs, device=CPU, rounds=5).ratio == 0.5


def test_rounds_that_differ_widen_the_interval_around_the_ratio(machine):
    ours = machine.work("ours", [1.0, *(1.0 + n / 10 for n in range(11))])
    theirs = machine.work("theirs", [1.0] * 12)
    found = compare(ours, theirs, device=CPU, rounds=11)
    assert 1.0 <= found.low < found.ratio < found.high <= 2.0
    assert found.ratio == pytest.approx(1.5)


def test_what_is_over_too_soon_runs_several_times_and_is_averaged(machine, monkeypatch):
    monkeypatch.setattr(timing, "SHORTEST", 5.0)
    ours, theirs = machine.work("ours", [2.0] * 9), machine.work("theirs", [7.0] * 9)
    found = compare(ours, theirs, device=CPU, rounds=1)
    assert machine.log.count("ours") == 1 + 3
    assert machine.log.count("theirs") == 1 + 1
    assert (found.ours, found.theirs) == (2.0, 7.0)


def test_no_rounds_are_refused():
    with pytest.raises(ValueError, match="a comparison needs at least 1 round, got 0"):
        compare(list, list, device=CPU, rounds=0)


@pytest.mark.parametrize("collecting", [True, False])
def test_the_garbage_collector_waits_meanwhile_and_is_then_as_before(collecting):
    seen = []
    (gc.enable if collecting else gc.disable)()
    try:
        compare(lambda: seen.append(gc.isenabled()), list, device=CPU, rounds=1)
        assert not seen[-1]
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


def test_a_pair_is_made_when_it_is_measured_and_keeps_its_names():
    made = []

    def make():
        made.append(1)
        return list, list

    pair = Pair(case="forward", length=5, ours="a", theirs="b", make=make)
    assert not made
    found = measure(pair, device=CPU, rounds=2)
    assert (found.case, found.length, found.ours, found.theirs) == ("forward", 5, "a", "b")
    assert found.time.rounds == 2
    assert len(made) == 1


@pytest.mark.cuda
def test_on_a_gpu_the_time_is_that_of_the_work_not_of_its_launch():
    x = torch.randn(8192, 8192, device="cuda")
    large, small = x[:, :4096] @ x[:4096], x[:1024, :1024]
    found = compare(lambda: large @ x, lambda: small @ small, device=x.device, rounds=5)
    assert found.ratio > 50
