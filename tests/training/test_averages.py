"""Which weights are used in the end: averages, the best checkpoints, and when to stop."""

import math

import pytest
import torch
from jobs import First, fresh, settings, setup_for, some_rows, train_on
from torch import nn

from glassformer.training.averages import MovingAverage, mean
from glassformer.training.checkpoints import checkpoint_weights
from glassformer.training.loop import train
from glassformer.training.setup import Validation
from glassformer.training.validation import record_score
from glassformer.training.weights import weights_of


@pytest.fixture
def task():
    rows = some_rows(13, First.symbols)
    return First({"train": rows, "valid": rows[:5]}, settings())


class Scored(First):
    """A job whose scores are dealt beforehand."""

    def __init__(self, scores, *, higher=True):
        rows = some_rows(5, First.symbols)
        super().__init__({"train": rows, "valid": rows}, settings())
        self.left, self.higher_is_better = list(scores), higher

    def score(self, model, batches):
        return {"accuracy": self.left.pop(0)}


def test_the_moving_average_is_the_formula():
    """average ← d average + (1 - d) weights, d = min(decay, (1 + step) / (10 + step))."""
    average = MovingAverage(0.25, {"w": torch.tensor([1.0])})
    by_hand = 1.0
    for step, weight in enumerate([3.0, -2.0, 5.0, 4.0], start=1):
        average.update({"w": torch.tensor([weight])}, step)
        decay = min(0.25, (1 + step) / (10 + step))
        by_hand = decay * by_hand + (1 - decay) * weight
        assert average.weights["w"].item() == pytest.approx(by_hand, rel=1e-6)
    assert (1 + 1) / (10 + 1) < 0.25 < (1 + 4) / (10 + 4)  # both sides of the minimum were tried


def test_counters_in_a_moving_average_are_the_last_ones():
    norm = nn.BatchNorm1d(3)
    average = MovingAverage(0.9, weights_of(norm))
    norm(torch.randn(5, 3))
    average.update(weights_of(norm), 1)
    assert average.weights["num_batches_tracked"] == 1


def test_the_average_follows_the_weights_of_every_step(task):
    setup = setup_for(task, steps=4, log_every=1, ema=0.5)
    state = fresh(task, setup)
    by_hand = {name: tensor.clone() for name, tensor in weights_of(state.model).items()}
    for event in train(state, task, setup):
        if isinstance(event, Validation):
            continue
        decay = min(0.5, (1 + event.step) / (10 + event.step))
        for name, tensor in weights_of(state.model).items():
            by_hand[name] = decay * by_hand[name] + (1 - decay) * tensor
            torch.testing.assert_close(
                state.averaged_weights[name], by_hand[name], rtol=1e-5, atol=1e-7
            )


def test_validation_tries_the_averaged_weights(task, monkeypatch):
    seen, score = [], task.score

    def noted(model, batches):
        seen.append({name: tensor.clone() for name, tensor in weights_of(model).items()})
        return score(model, batches)

    monkeypatch.setattr(task, "score", noted)
    state, _ = train_on(task, setup_for(task, steps=2, validate_every=2, ema=0.5))
    [tried] = seen
    assert all(tried[name].equal(state.averaged_weights[name]) for name in tried)
    assert not all(tried[name].equal(own) for name, own in weights_of(state.model).items())


def test_the_mean_of_checkpoints_is_their_mean_and_counters_are_the_firsts():
    many = [{"w": torch.full((2, 3), x), "steps": torch.tensor(int(x))} for x in (1.0, 2.0, 6.0)]
    found = mean(iter(many))
    assert found["w"].equal(torch.full((2, 3), 3.0))
    assert found["steps"] == 1
    assert mean(many[:1])["w"].equal(many[0]["w"])


def test_a_checkpoint_is_used_with_its_average_where_it_has_one(task, tmp_path):
    state, _ = train_on(task, setup_for(task, tmp_path / "a", steps=3, ema=0.5))
    found = checkpoint_weights(tmp_path / "a", 3)
    assert all(found[name].equal(tensor) for name, tensor in state.averaged_weights.items())
    state, _ = train_on(task, setup_for(task, tmp_path / "b", steps=3))
    found = checkpoint_weights(tmp_path / "b", 3)
    assert all(found[name].equal(tensor) for name, tensor in weights_of(state.model).items())


@pytest.mark.parametrize(
    ("scores", "higher", "ended", "best"),
    [
        ([0.1, 0.3, 0.2, 0.3, 0.9], True, 4, 2),  # equal is not better
        ([0.1, 0.3, 0.2, 0.4, 0.1, 0.2, 0.9], True, 6, 4),
        ([0.5, 0.3, 0.4, 0.35, 0.1], False, 4, 2),
        ([0.1, 0.2, 0.3, 0.4, 0.5], True, 5, 5),
    ],
)
def test_training_stops_when_patience_runs_out(scores, higher, ended, best):
    task = Scored(scores, higher=higher)
    setup = setup_for(task, steps=len(scores), validate_every=1, patience=2)
    state, events = train_on(task, setup)
    tried = [event for event in events if isinstance(event, Validation)]
    assert state.progress.step == tried[-1].step == ended
    [(score, kept)] = state.progress.best
    assert max(event.step for event in tried if event.best) == kept
    assert score == scores[best - 1]
    assert kept == max(n for n, tried in enumerate(scores[:ended], 1) if tried == score)
    assert list(train_on(task, setup, state)[1]) == []  # stopped stays stopped


def test_the_best_checkpoints_and_the_two_newest_stay_and_others_go(tmp_path):
    scores, folder = [0.5, 0.9, 0.1, 0.7, 0.2, 0.3], tmp_path / "checkpoints"
    task = Scored(scores)
    setup = setup_for(task, folder, steps=6, validate_every=1, keep=2)
    state, _ = train_on(task, setup)
    assert state.progress.best == [(0.9, 2), (0.7, 4)]
    assert sorted(path.name for path in folder.iterdir()) == [
        "latest",
        "step-2",
        "step-4",
        "step-5",
        "step-6",
    ]
    assert (folder / "latest").read_text() == "step-6\n"


def test_as_many_checkpoints_are_kept_as_are_to_be_averaged(tmp_path):
    task, folder = Scored([0.1, 0.4, 0.3, 0.2]), tmp_path / "checkpoints"
    state, _ = train_on(task, setup_for(task, folder, steps=4, validate_every=1, average=3))
    assert [step for _, step in state.progress.best] == [2, 3, 4]
    assert all((folder / f"step-{step}").is_dir() for step in (2, 3, 4))
    assert not (folder / "step-1").exists()


def test_every_validation_says_whether_it_is_the_best():
    task = Scored([0.2, 0.1, 0.3, 0.3])
    _, events = train_on(task, setup_for(task, steps=4, validate_every=1))
    assert [e.best for e in events if isinstance(e, Validation)] == [True, False, True, True]


@pytest.mark.parametrize("higher", [True, False])
def test_a_score_that_is_no_number_is_worse_than_any(higher):
    task = Scored([], higher=higher)
    setup = setup_for(task, steps=9, keep=3, validate_every=1)
    state = fresh(task, setup)
    said = []
    for step, score in enumerate([math.nan, 0.2, math.nan, 0.1 if not higher else 0.3], start=1):
        state.progress.step = step
        said.append(record_score(state, task, setup, score))
    assert said == [True, True, False, True]
    assert [step for _, step in state.progress.best] == [4, 2, 3]


def test_nothing_right_is_not_called_the_best():
    task = Scored([])
    setup = setup_for(task, steps=9, keep=2, validate_every=1)
    state = fresh(task, setup)
    said = []
    for step, (score, loss) in enumerate([(0.0, 0.9), (0.0, 0.8), (0.1, 0.7)], start=1):
        state.progress.step = step
        said.append(record_score(state, task, setup, score, loss))
    assert said == [False, False, True]
    assert [step for _, step in state.progress.best] == [3, 2], "the order is kept all the same"


def test_of_equal_scores_the_one_with_the_lower_loss_is_the_best():
    task = Scored([])
    setup = setup_for(task, steps=9, keep=2, validate_every=1)
    state = fresh(task, setup)
    said = []
    for step, loss in enumerate([0.5, 0.4, 0.7, 0.4, math.nan], start=1):
        state.progress.step = step
        said.append(record_score(state, task, setup, 0.9, loss))
    assert said == [True, True, False, True, False]
    assert state.progress.best == [(0.9, 4), (0.9, 2)]
    assert state.progress.losses == {"2": 0.4, "4": 0.4}
    assert state.progress.stale == 4  # patience goes by the score
