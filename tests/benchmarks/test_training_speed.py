"""`glassformer bench train`: our loop and the peers learn from the same rows, and all is told."""

import json
import sys

import numpy as np
import pytest
import torch

from glassformer.benchmarks import timing
from glassformer.benchmarks.training import corpus, padding, race, works
from glassformer.benchmarks.training.pair_contests import pair_work
from glassformer.benchmarks.training.product import STEPS, ProductSide
from glassformer.benchmarks.training.race import Bench, Contest, Peer
from glassformer.benchmarks.training.rows import TextRows, pair_rows
from glassformer.benchmarks.training.sizes import FULL, SMALL, Lengths
from glassformer.cli import main
from glassformer.training.loader import one_epoch

CPU = torch.device("cpu")
LINE = ["bench", "train", "--small", "--device", "cpu", "--threads", "1"]


@pytest.fixture
def bench(tmp_path):
    return Bench(CPU, SMALL, tmp_path, None, rounds=1, seconds=0.01, warm_ups=0)


class Clockwork:
    """A side that takes so many seconds for 10 tokens, by a clock that only work moves."""

    now = 0.0

    def __init__(self, *seconds):
        self.seconds, self.log, self.remarks = iter(seconds), [], ["compiled"]

    def advance(self):
        Clockwork.now += next(self.seconds)
        return 10

    def close(self):
        self.log.append("closed")


@pytest.fixture
def _clock(monkeypatch):
    monkeypatch.setattr(race.time, "perf_counter", lambda: Clockwork.now)


# Turns


@pytest.mark.usefixtures("_clock")
def test_the_first_steps_of_a_turn_do_not_count():
    assert race.turn(Clockwork(100.0, 2.0, 3.0), seconds=4.0) == 20 / 5.0


@pytest.mark.usefixtures("_clock")
def test_a_machine_that_slows_down_does_not_change_the_lead():
    ours, theirs = Clockwork(1, 1, 1, 8, 1, 2), Clockwork(1, 3, 1, 24, 1, 6)
    speeds = race.race({"ours": ours, "theirs": theirs}, rounds=3, seconds=0.5)
    found = timing.compared(speeds["ours"], speeds["theirs"])
    assert (found.ours, found.theirs) == (5.0, pytest.approx(10 / 6))
    assert [found.low, found.ratio, found.high] == pytest.approx([3.0] * 3)


@pytest.mark.usefixtures("_clock")
def test_the_peer_chooses_the_size_that_is_fastest():
    trials = {8: lambda: Clockwork(1, 1, 3), 16: lambda: Clockwork(9, 9, 1)}
    assert race.fastest(trials, seconds=0.5, warm_ups=1) == 16


@pytest.mark.usefixtures("_clock")
def test_every_side_is_closed_and_the_bar_decides(bench):
    sides = [Clockwork(4, 1, 2), Clockwork(5, 1, 4), Clockwork(6, 1, 3)]
    makes = [lambda side=side: side for side in sides]
    contest = Contest(
        case="case",
        ours=makes[0],
        peers={"slow": Peer(makes[1], 1.9, 3.0), "fast": Peer(makes[2], 1.9, 3.0)},
    )
    slow, fast = works.held("pairs", contest, bench)
    assert (slow.speed.ratio, slow.passed) == (2.0, True)
    assert (fast.speed.ratio, fast.passed) == (1.5, False)
    assert slow.remarks == ["compiled"]
    assert (slow.start, slow.their_start, fast.their_start) == (4.0, 5.0, 6.0)
    assert all(side.log == ["closed"] for side in sides)


# Rows


def test_lengths_have_the_mean_and_the_deviation_asked_for():
    rng = np.random.default_rng(5)
    found = corpus.draw_lengths(20_000, Lengths(mean=25, deviation=15, longest=500), rng)
    assert found.mean() == pytest.approx(25, rel=0.03)
    assert found.std() == pytest.approx(15, rel=0.05)
    assert corpus.draw_lengths(2000, FULL.sentence, rng).max() == FULL.sentence.longest


def test_the_peer_learns_from_the_rows_of_ours_and_from_no_padding(bench):
    work = pair_work(bench, 64)
    rows = pair_rows(work.task)
    chosen = padding.sorted_rows([rows.counts, rows.counts], 64)
    assert sorted(np.concatenate([numbers for numbers, _ in chosen])) == list(
        range(len(rows.counts))
    )
    batches = padding.pair_batches(rows, chosen, CPU)
    for batch in batches:
        source, is_padding, inputs, labels = batch.inputs
        assert source.shape == is_padding.shape
        assert inputs.shape == labels.shape
        assert batch.tokens == int((labels != padding.IGNORED).sum())
        assert source.shape[1] % padding.MULTIPLE == 0
    assert sum(batch.tokens for batch in batches) == rows.counts.sum()


def test_batches_of_sorted_rows_keep_to_their_budget():
    rng = np.random.default_rng(3)
    sides = [rng.integers(1, 50, 301) for _ in range(2)]
    for rows, _ in padding.sorted_rows(sides, 256):
        width = sum(-(-side[rows].max() // padding.MULTIPLE) * padding.MULTIPLE for side in sides)
        assert len(rows) * width <= 256 or len(rows) == 1


def test_buckets_have_few_shapes_each_of_which_comes_first_once():
    rng = np.random.default_rng(3)
    sides = [rng.integers(1, 50, 3001) for _ in range(2)]
    chosen = padding.bucketed_rows(sides, 512)
    shapes = [(len(rows), width) for rows, width in chosen]
    assert len(set(shapes)) == len(set(shapes[: len(set(shapes))])) <= len(padding.BUCKETS)
    for rows, width in chosen:
        assert max(side[rows].max() for side in sides) <= width
        assert len(rows) * width * 2 <= 512
    used = np.concatenate([rows for rows, _ in chosen])
    assert len(set(used.tolist())) == len(used), "no row is in two batches"


def test_gaps_are_real_tokens_and_as_many_as_ours_hides():
    texts = [torch.arange(1, length) for length in (4, 12, 20)]
    [batch] = padding.gap_batches(TextRows(texts, None), [(np.arange(3), 32)], 0.25, CPU)
    ids, is_padding, places, labels = batch.inputs
    assert ids.shape == (3, 32)
    assert batch.tokens == 33
    assert len(places) == 8
    assert not is_padding.flatten()[places].any()
    assert torch.equal(ids.flatten()[places], labels)


def test_our_side_counts_the_target_tokens_of_its_steps(bench):
    work = pair_work(bench, 64)
    rows = pair_rows(work.task)
    side = ProductSide(work, rows.counts)
    side.advance()
    tokens = sum(side.advance() for _ in range(4))
    side.close()
    in_a_step = rows.counts.sum() / len(one_epoch(work.task, work.setup, 0))
    assert tokens / (4 * STEPS) == pytest.approx(in_a_step, rel=0.15)


def test_runs_are_prepared_without_the_library_that_scores_need(bench, monkeypatch):
    for name in ("rapidfuzz", "rapidfuzz.distance"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(pair_work(bench, 64).task.lengths("train"))


# The command


def test_the_command_tells_speed_memory_and_start_of_both_sides(capsys):
    assert main([*LINE, "--only", "reviews", "--only", "layers", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["machine"]["seconds"] == 0.05
    against = [(one["work"], one["theirs"], one["bar"]) for one in found["training"]]
    assert against == [
        ("reviews", "nn.TransformerEncoder, padded", 1.5),
        ("reviews", "nn.TransformerEncoder, sorted", 1.15),
        ("layers", "nn.TransformerEncoderLayer", 1.1),
        ("layers", "nn.TransformerEncoderLayer", 1.1),
    ]
    for one in found["training"]:
        assert one["passed"] == (one["speed"]["ratio"] >= one["bar"])
        assert min(one["start"], one["their_start"], *one["speed"].values()) > 0


def test_without_peers_their_work_is_left_out_and_told(capsys):
    assert main([*LINE, "--only", "language-model"]) == 0
    told = (
        "Note: language-model: left out, needs nanoGPT; give --peers the folder that holds "
        "nanogpt.py"
    )
    assert told in capsys.readouterr().out
