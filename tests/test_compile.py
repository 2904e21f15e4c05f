"""Attention and stacks compile into one graph, once for all lengths, once for cached steps."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "compiled.py"


@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.full)])
def test_compiling_changes_nothing_and_happens_once(backend):
    """In a process of its own: the hook that checks shapes cannot be compiled."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), backend], capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("compilations") >= 6
