"""Weights and checkpoints on disk: shared ones once, nothing half-written, broken files refused."""

import errno
import itertools
import json
import os
import shutil
import threading
from pathlib import Path

import pytest
import torch
from jobs import First, fresh, make, settings, setup_for, some_rows, train_on
from torch import nn

from glassformer.errors import GlassformerError
from glassformer.files import write_json, write_text
from glassformer.training.weights import (
    load_weights,
    read_tensors,
    using_weights,
    weights_of,
    write_tensors,
)


@pytest.fixture
def task():
    rows = some_rows(13, First.symbols)
    return First({"train": rows, "valid": rows[:5]}, settings())


@pytest.fixture
def trained(task, tmp_path):
    """A setup, its state after four steps, and its checkpoints."""
    setup = setup_for(
        task, tmp_path / "checkpoints", steps=4, save_every=1, validate_every=4, ema=0.5
    )
    state, _ = train_on(task, setup)
    return setup, state


def same(first, second):
    return first.keys() == second.keys() and all(first[n].equal(second[n]) for n in first)


def test_shared_weights_are_stored_once_and_come_back_shared(tmp_path):
    task = make("copy", tmp_path / "task", share=True)
    model = task.model()
    assert "target.table.weight" in model.state_dict()
    assert [n for n in weights_of(model) if "table" in n] == ["frontend.table.weight"]
    write_tensors(weights_of(model), tmp_path / "model.safetensors")
    other = task.model()
    assert not same(weights_of(other), weights_of(model))
    load_weights(other, read_tensors(tmp_path / "model.safetensors"), "here")
    assert same(weights_of(other), weights_of(model))
    assert other.target.table.weight is other.frontend.table.weight


def test_weights_are_the_models_own_and_buffers_are_among_them():
    norm = nn.BatchNorm1d(3)
    weights = weights_of(norm)
    assert weights.keys() == norm.state_dict().keys()
    weights["weight"].zero_()
    assert not norm.weight.any()
    assert not weights["weight"].requires_grad


def test_any_layout_in_memory_can_be_written(tmp_path):
    turned = torch.arange(6.0).reshape(2, 3).T
    write_tensors({"turned": turned, "one": torch.tensor(7)}, tmp_path / "t.safetensors")
    found = read_tensors(tmp_path / "t.safetensors")
    assert found["turned"].equal(turned)
    assert found["one"] == 7


def test_a_file_of_weights_may_be_read_like_any_other(tmp_path):
    (tmp_path / "other").touch()
    write_tensors({"a": torch.ones(2)}, tmp_path / "weights")
    modes = {(tmp_path / name).stat().st_mode for name in ("other", "weights")}
    assert len(modes) == 1


def broken_files(folder):
    write_tensors({"a": torch.ones(100)}, folder / "whole")
    whole = (folder / "whole").read_bytes()
    (folder / "truncated").write_bytes(whole[:-7])
    (folder / "longer").write_bytes(whole + b"more")
    (folder / "headless").write_bytes(whole[:5])
    (folder / "empty").write_bytes(b"")
    (folder / "text").write_text("not weights at all, but a text of some length")
    (folder / "pickled").write_bytes(b"\x80\x04\x95" + bytes(40))
    (folder / "folder").mkdir()


@pytest.mark.parametrize(
    "name", ["truncated", "longer", "headless", "empty", "text", "pickled", "folder", "missing"]
)
def test_what_is_no_whole_file_of_weights_is_refused_in_one_line(name, tmp_path):
    broken_files(tmp_path)
    with pytest.raises(GlassformerError) as refused:
        read_tensors(tmp_path / name)
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / name}: not a complete weights file (")
    assert message.endswith("); copy it again, or resume the run")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda w: w.pop("bias"), "here: missing weight bias; it belongs to another model"),
        (
            lambda w: w.update(extra=torch.ones(1)),
            "here: unexpected weight extra; it belongs to another model",
        ),
        (
            lambda w: w.update(bias=torch.ones(5)),
            "here: bias has shape (5,), the model expects (2,); it belongs to another model",
        ),
        (
            lambda w: w.update(bias=torch.ones(2, dtype=torch.int32)),
            "here: bias holds int32, the model expects float32; it belongs to another model",
        ),
    ],
)
def test_weights_of_another_model_are_refused_by_name(change, said):
    layer = nn.Linear(3, 2)
    weights = {name: tensor.clone() for name, tensor in weights_of(layer).items()}
    change(weights)
    with pytest.raises(GlassformerError) as refused:
        load_weights(layer, weights, "here")
    assert str(refused.value) == said


def test_other_weights_are_used_for_a_while_only():
    layer = nn.Linear(3, 2)
    before = {name: tensor.clone() for name, tensor in weights_of(layer).items()}
    zeros = {name: torch.zeros_like(tensor) for name, tensor in before.items()}
    with using_weights(layer, zeros):
        assert same(weights_of(layer), zeros)
    assert same(weights_of(layer), before)
    with pytest.raises(KeyError), using_weights(layer, zeros):
        raise KeyError
    assert same(weights_of(layer), before)
    with using_weights(layer, None):
        assert same(weights_of(layer), before)


def test_a_text_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "notes.txt"
    write_text("old", path)
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_text("new", path)
    assert path.read_text() == "old"
    monkeypatch.undo()
    write_text("new", path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]
    assert path.read_text() == "new"


def test_a_reader_never_sees_half_a_file(tmp_path):
    path, seen, enough = tmp_path / "state.json", set(), threading.Event()
    write_json([-1] * 1000, path)

    def write_on():
        for number in itertools.count():
            write_json([number] * 1000, path)
            if enough.is_set():
                return

    writer = threading.Thread(target=write_on)
    writer.start()
    try:
        while len(seen) < 30:
            values = json.loads(path.read_text())
            assert len(values) == 1000
            assert len(set(values)) == 1
            seen.add(values[0])
    finally:
        enough.set()
        writer.join()


def test_json_keeps_every_script_and_every_bit(tmp_path):
    values = {"label": "好 é 🙂", "score": 0.1 + 0.2, "best": [[1 / 3, 7]]}
    write_json(values, tmp_path / "values.json")
    text = (tmp_path / "values.json").read_text(encoding="utf-8")
    assert "好 é 🙂" in text
    assert json.loads(text) == values


def test_a_checkpoint_holds_all_that_changes(trained):
    setup, state = trained
    files = {path.name for path in (setup.checkpoints / "step-4").iterdir()}
    assert files == {
        *("model.safetensors", "optimiser.safetensors", "average.safetensors", "state.json")
    }
    assert (setup.checkpoints / "latest").read_text() == "step-4\n"
    assert state.progress.step == 4


def left_by_a_kill(checkpoints, moment):
    """The folder as it is when a process is killed while it saves a step or removes one."""
    stray = checkpoints / {"writing": ".step-9.new", "removing": ".step-1.old"}[moment]
    shutil.copytree(checkpoints / "step-4", stray)
    (stray / "state.json").unlink()
    if moment == "writing":
        (stray / "optimiser.safetensors").write_bytes(b"half")


@pytest.mark.parametrize("moment", ["writing", "removing"])
def test_a_kill_while_saving_is_survived_and_leaves_nothing_behind(task, trained, moment):
    setup, state = trained
    left_by_a_kill(setup.checkpoints, moment)
    (setup.checkpoints / ".latest.new").write_text("step-")
    again = fresh(task, setup)
    assert again.load(setup.checkpoints)
    assert again.progress == state.progress
    assert same(weights_of(again.model), weights_of(state.model))
    assert same(again.averaged_weights, state.averaged_weights)
    assert same(again.optimisers.tensors(), state.optimisers.tensors())
    kept = {path.name for path in setup.checkpoints.iterdir()}
    assert kept == {"latest", "step-3", "step-4"}


def test_a_checkpoint_that_has_its_name_is_used_before_latest_names_it(task, trained):
    setup, state = trained
    (setup.checkpoints / "latest").write_text("step-3\n")
    again = fresh(task, setup)
    assert again.load(setup.checkpoints)
    assert (setup.checkpoints / "latest").read_text() == "step-4\n"
    assert again.progress == state.progress


def test_a_kill_before_the_first_checkpoint_is_whole_begins_again(task, trained):
    setup, _ = trained
    for step in (3, 4):
        (setup.checkpoints / f"step-{step}").rename(setup.checkpoints / f".step-{step}.new")
    again = fresh(task, setup)
    before = {name: tensor.clone() for name, tensor in weights_of(again.model).items()}
    assert not again.load(setup.checkpoints)
    assert again.progress.step == 0
    assert same(weights_of(again.model), before)
    assert not fresh(task, setup).load(setup.checkpoints / "nowhere")


def test_what_is_loaded_no_longer_hangs_on_the_file(task, trained):
    """A file may be removed, or written over, while the model that came from it learns on."""
    setup, state = trained
    again = fresh(task, setup)
    again.load(setup.checkpoints)
    for path in (setup.checkpoints / "step-4").glob("*.safetensors"):
        path.write_bytes(b"\xff" * path.stat().st_size)
    assert same(weights_of(again.model), weights_of(state.model))
    assert same(again.optimisers.tensors(), state.optimisers.tensors())
    assert same(again.averaged_weights, state.averaged_weights)


def test_a_checkpoint_of_another_model_is_refused(tmp_path, trained):
    setup, _ = trained
    other = make("ctc", tmp_path / "other")
    with pytest.raises(GlassformerError, match=r"step-4: .* belongs to another model$"):
        fresh(other, setup).load(setup.checkpoints)


def test_a_file_that_may_not_be_read_is_not_called_incomplete(tmp_path, monkeypatch):
    def refuse(path, *args):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    write_tensors({"a": torch.ones(2)}, tmp_path / "weights")
    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(GlassformerError, match=r"weights: cannot be read \(Permission denied\)"):
        read_tensors(tmp_path / "weights")
