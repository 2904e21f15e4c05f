"""Which kind of step a run takes, with the capture itself played by a stand-in."""

from dataclasses import replace

import pytest
import torch
from jobs import make, setup_for

from glassformer.training import step_choice
from glassformer.training.captured import CapturedStep
from glassformer.training.progress import Progress
from glassformer.training.step import EagerStep


class Captured(CapturedStep):
    """Captures nothing; `fails` says for which kinds it cannot."""

    fails: tuple[str | None, ...] = ()
    made: list[str | None]

    def __init__(self, model, task, setup, *, shape, first, compiled=None):
        EagerStep.__init__(self, model, task, setup)
        self.made.append(compiled)
        if compiled in self.fails:
            raise RuntimeError("no compiler\nand more")

    def seconds(self):
        return 0.1


@pytest.fixture
def choose(tmp_path, monkeypatch):
    """The kinds of steps that were tried, and the note, for a run on a GPU."""

    def chosen(steps, *, fails=(), compile_steps=None, deterministic=False, recompute=False):
        task = make("first", tmp_path)
        setup = setup_for(task, steps=steps, recompute=recompute)
        monkeypatch.setattr(Captured, "fails", fails)
        monkeypatch.setattr(Captured, "made", made := [], raising=False)
        monkeypatch.setattr(step_choice, "CapturedStep", Captured)
        monkeypatch.setattr(step_choice, "common_shape", lambda *_: (1,))
        monkeypatch.setattr(step_choice, "first_fitting", lambda *_: setup_batch)
        machine = replace(
            setup.machine,
            device=torch.device("cuda"),
            compile=compile_steps,
            deterministic=deterministic,
        )
        setup_batch = type("First", (), {"batch": None})
        step, note = step_choice.choose_step(
            task.model(), task, replace(setup, machine=machine), Progress()
        )
        return made, type(step), None if note is None else note.text

    return chosen


def test_a_run_is_compiled_when_its_steps_win_the_time_back(choose):
    assert choose(10) == ([None], Captured, "steps run as CUDA graphs")
    made, kind, note = choose(1000)
    assert (made, kind) == ([None, "blocks"], Captured)
    assert note.startswith("steps are compiled and run as CUDA graphs, ready after ")
    assert choose(10_000)[0] == [None, "stacks"]
    assert choose(10_000, deterministic=True)[0] == [None]
    assert choose(10_000, deterministic=True, compile_steps=True)[0] == [None, "blocks"]
    assert choose(10, compile_steps=True)[0] == [None, "blocks"]
    assert choose(10_000, compile_steps=False) == ([], EagerStep, None)


def test_what_fails_gives_way_to_the_next_simpler_kind(choose):
    without = "steps run as CUDA graphs without compiling, which failed: no compiler"
    assert choose(1000, fails=("blocks",)) == ([None, "blocks", None], Captured, without)
    eager = "steps run eagerly, as capturing them failed: no compiler"
    assert choose(10, fails=(None,)) == ([None], EagerStep, eager)
    assert choose(10, fails=(None,), compile_steps=True) == ([None], EagerStep, eager)
    made, kind, note = choose(10_000, recompute=True)
    assert (made, kind) == ([], EagerStep)
    assert note == "steps run eagerly, not as CUDA graphs: train.recompute is on"
