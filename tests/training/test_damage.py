"""Damaged checkpoints: the one before is used, and what is wrong is said."""

import json

import jaxtyping
import pytest
from jobs import First, fresh, settings, setup_for, some_rows, train_on

from glassformer.errors import GlassformerError
from glassformer.training.weights import weights_of


@pytest.fixture
def task():
    rows = some_rows(13, First.symbols)
    return First({"train": rows, "valid": rows[:5]}, settings())


@pytest.fixture
def setup(task, tmp_path):
    setup = setup_for(task, tmp_path / "c", steps=6, save_every=1, validate_every=3, ema=0.5)
    train_on(task, setup)
    return setup


def same(first, second):
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-7])


def turn_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def write_nonsense(path):
    path.write_text("{", encoding="utf-8")


def write_a_list(path):
    path.write_text("[]", encoding="utf-8")


def write_a_strange_field(path):
    path.write_text(json.dumps({"best": [], "files": {}, "stop": 1}), encoding="utf-8")


def write_values(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values), encoding="utf-8")


IMPOSSIBLE = [
    ({"step": -6}, "step cannot be -6"),
    ({"step": 6.0}, "step cannot be 6.0"),
    ({"epoch": None}, "epoch cannot be None"),
    ({"micro_batches": 0}, "micro_batches cannot be 0"),
    ({"halvings": True}, "halvings cannot be True"),
    ({"best": [[0.5, -3]]}, "best cannot contain [0.5, -3]"),
    ({"best": [["good", 3]]}, "best cannot contain ['good', 3]"),
    ({"seconds": -1.0}, "seconds cannot be -1.0"),
    ({"since": ["much"]}, "since cannot be ['much']"),
]


@pytest.fixture
def types_unchecked():
    """As outside of the tests, where no hook checks what a record is made of."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(("values", "said"), IMPOSSIBLE, ids=str)
def test_a_checkpoint_whose_numbers_cannot_be_is_passed_over(values, said, task, setup):
    path = setup.checkpoints / "step-6" / "state.json"
    write_values(path, **values)
    state = fresh(task, setup)
    assert state.load(setup.checkpoints)
    assert state.progress.step == 5
    assert state.damaged == [f"{path}: not a valid checkpoint state ({said})"]


def test_a_checkpoint_that_tells_of_another_step_is_passed_over(task, setup):
    path = setup.checkpoints / "step-6" / "state.json"
    write_values(path, step=4, best=[])
    state = fresh(task, setup)
    assert state.load(setup.checkpoints)
    assert state.damaged == [f"{path}: belongs to step 4"]


def remove(path):
    path.unlink()


DAMAGE = {
    "cut": ("model.safetensors", cut_off, "is damaged"),
    "a bit": ("optimiser.safetensors", turn_a_bit, "is damaged"),
    "average": ("average.safetensors", turn_a_bit, "is damaged"),
    "missing": ("model.safetensors", remove, "is missing"),
    "no json": ("state.json", write_nonsense, "not a valid checkpoint state (Expecting"),
    "a list": ("state.json", write_a_list, "not a valid checkpoint state ("),
    "strange": ("state.json", write_a_strange_field, "not a valid checkpoint state ("),
    "no state": ("state.json", remove, "not a valid checkpoint state ("),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(kind, task, setup):
    name, damage, said = DAMAGE[kind]
    peace = fresh(task, setup)
    peace.load(setup.checkpoints)
    path = setup.checkpoints / "step-6" / name
    damage(path)
    state = fresh(task, setup)
    assert state.load(setup.checkpoints)
    assert state.progress.step == 5
    (told,) = state.damaged
    assert told.startswith(f"{path}: {said}")
    assert "\n" not in told
    assert not (setup.checkpoints / "step-6").exists()
    train_on(task, setup, state)
    assert same(weights_of(state.model), weights_of(peace.model))
    assert same(state.averaged_weights, peace.averaged_weights)
    assert state.progress.best == peace.progress.best


def test_when_no_checkpoint_is_whole_it_says_so_and_removes_nothing(task, setup):
    for home in setup.checkpoints.glob("step-*"):
        cut_off(home / "model.safetensors")
    before = sorted(setup.checkpoints.iterdir())
    with pytest.raises(GlassformerError) as refused:
        fresh(task, setup).load(setup.checkpoints)
    message = str(refused.value)
    assert message.startswith(f"{setup.checkpoints}: all checkpoints are damaged (")
    assert message.endswith("is damaged); remove the folder to train from scratch")
    assert sorted(setup.checkpoints.iterdir()) == before


def test_a_best_checkpoint_that_is_gone_is_found_again(task, tmp_path, monkeypatch):
    """Gone back to a time when another was the best: that one was removed since."""
    scores = iter([0.5, 0.4, 0.9, 0.3, 0.9, 0.3])
    monkeypatch.setattr(task, "score", lambda model, batches: {"accuracy": next(scores)})
    setup = setup_for(task, tmp_path / "c", steps=4, save_every=1, validate_every=1)
    train_on(task, setup)
    assert {path.name for path in setup.checkpoints.glob("step-*")} == {"step-3", "step-4"}
    home = setup.checkpoints / "step-2"
    (setup.checkpoints / "step-4").rename(home)
    state = json.loads((home / "state.json").read_text())
    state |= {"step": 2, "best": [[0.5, 1]]}
    (home / "state.json").write_text(json.dumps(state))
    cut_off(setup.checkpoints / "step-3" / "model.safetensors")
    again = fresh(task, setup)
    assert again.load(setup.checkpoints)
    assert again.progress.best == []
    train_on(task, setup, again)
    assert again.progress.best == [(0.9, 3)]


def test_a_damaged_best_checkpoint_is_named_and_the_next_best_is_used(task, tmp_path, monkeypatch):
    scores = iter([0.9, 0.5, 0.6, 0.4])
    monkeypatch.setattr(task, "score", lambda model, batches: {"accuracy": next(scores)})
    setup = setup_for(task, tmp_path / "c", steps=4, validate_every=1, keep=2)
    state, _ = train_on(task, setup)
    assert state.progress.best == [(0.9, 1), (0.6, 3)]
    path = setup.checkpoints / "step-1" / "model.safetensors"
    turn_a_bit(path)
    again = fresh(task, setup)
    assert again.load(setup.checkpoints)
    assert again.progress.step == 4
    assert again.progress.best == [(0.6, 3)]
    assert again.damaged == [f"{path}: is damaged"]
