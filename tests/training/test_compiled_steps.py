"""Compiled steps on a CPU learn what others do."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from jobs import make, setup_for

from glassformer.training.progress import Progress
from glassformer.training.step_choice import choose_step

SCRIPT = Path(__file__).with_name("compiling.py")


@pytest.mark.full
@pytest.mark.skipif(shutil.which("g++") is None, reason="PyTorch's inductor needs a C++ compiler")
def test_compiled_steps_learn_what_others_do(tmp_path):
    cache = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, str(SCRIPT), str(tmp_path / "job")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=cache)
    assert done.stdout.endswith("the same\n"), done.stderr
    assert any((tmp_path / "cache" / "glassformer" / "compiled").rglob("*"))  # for the next run


def test_a_cpu_compiles_only_what_it_is_asked_to(tmp_path):
    task = make("first", tmp_path)
    setup = setup_for(task, steps=100_000)
    for wanted in (None, False):
        setup = replace(setup, machine=replace(setup.machine, compile=wanted))
        step, note = choose_step(model := task.model(), task, setup, Progress())
        assert (step.shape, note) == (None, None)
        assert all(block._compiled_call_impl is None for block in model.encoder.blocks)
