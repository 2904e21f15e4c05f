"""Attention and stacks compile into one graph, once for all lengths, once for cached steps."""

import subprocess
import sys
from pathlib import Path

import pytest

from glassformer.core.positions import POSITIONS

SCRIPT = Path(__file__).parent / "compiled.py"


@pytest.mark.parametrize(
    ("backend", "positions"),
    [
        ("eager", ["rotary", "transformer-xl"]),
        pytest.param("eager", list(POSITIONS), marks=pytest.mark.full),
        pytest.param("inductor", ["rotary"], marks=pytest.mark.full),
    ],
)
def test_compiling_changes_nothing_and_happens_once(backend, positions):
    """In a process of its own: the hook that checks shapes cannot be compiled."""
    command = [sys.executable, str(SCRIPT), backend, *positions]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("compilations") == 2 * len(positions) + 5
