"""Commands of `glassformer`, each in a process of its own, for test_other_job.py.

A program of its own: it imports PyTorch once and forks for each command, so that many cost little.
It reads a line of JSON a command, {"command": [...], "killed_at": FILE or null}, and kills the
process when the file is there. It answers with a line of JSON: how the command ended, and what it
wrote.
"""

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

from glassformer.cli import main
from glassformer.runs import api, compare, doctor, plan

USED = (api, compare, doctor, plan)  # imported once, before any command
SLOW = ("torch.utils.tensorboard",)  # to import, and no part of what is tried


def begin(command: list[str], out: Path, err: Path) -> int:
    """Run a command in a new process; its id."""
    process = os.fork()
    if process:
        return process
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for path, handle in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
        code = main(command)
        sys.stdout.flush()
        os._exit(code)
    except BaseException:
        traceback.print_exc()
        os._exit(70)


def end(process: int, killed_at: str | None) -> int:
    """Wait for a process to end, or kill it when a file is there; how it ended."""
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if killed_at is not None and Path(killed_at).exists():
            os.kill(process, signal.SIGKILL)
        time.sleep(0.001)


def serve() -> None:
    """Do what standard input says, a line at a time."""
    torch.set_num_threads(1)
    sys.modules.update(dict.fromkeys(SLOW))  # as if they were not installed
    out, err = Path("stdout"), Path("stderr")
    for line in sys.stdin:
        asked = json.loads(line)
        code = end(begin(asked["command"], out, err), asked["killed_at"])
        print(json.dumps([code, out.read_text(), err.read_text()]), flush=True)


if __name__ == "__main__":
    serve()
