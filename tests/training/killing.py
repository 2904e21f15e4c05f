"""Trains one run in peace and one that is killed again and again, for test_resume.py.

A program of its own: it imports PyTorch once and forks a process for each attempt, so that many
kills cost little. Usage: killing.py FOLDER; says on standard output what it did, as JSON.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from pathlib import Path

import torch

from glassformer.runs.api import resume, train

SLOW = ("sklearn", "torch.utils.tensorboard")  # to import, and no part of what is tried
SETTINGS = (
    *("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("model.encoder.dropout=0.2", "data.token_dropout=0.1", "data.batch_tokens=64"),
    *("data.tokenizer.kind=characters", "train.save_every=1", "train.validate_every=6"),
    *("train.log_every=2", "train.ema=0.9", "train.accumulate=2", "train.keep=2"),
    *("train.regularise.r_drop=0.5", "train.regularise.vat.weight=0.5"),
)
STEPS = 24


def attempt(run: Path) -> int:
    """Train, or go on with what is there, in a new process; its id."""
    process = os.fork()
    if process:
        return process
    try:
        torch.set_num_threads(1)
        if (run / "config.toml").exists():
            resume(run, quiet=True)
        else:
            data = run.parent / "rows.csv"
            train(
                "classify",
                data,
                run=run,
                steps=STEPS,
                set=SETTINGS,
                pretrain=False,
                quiet=True,
            )
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def wait(process: int, until=lambda: False, delay: float = 0.0) -> bool:
    """Kill the process this long after something holds. False when it ended by itself."""
    while True:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            if status:
                sys.exit(f"an attempt failed with status {status}")
            return False
        if until():
            time.sleep(delay)
            os.kill(process, signal.SIGKILL)
            _, status = os.waitpid(process, 0)
            return os.WIFSIGNALED(status)
        time.sleep(0.001)


def step_of(run: Path) -> int:
    latest = run / "checkpoints" / "latest"
    return int(latest.read_text().strip().removeprefix("step-")) if latest.exists() else 0


def moments(run: Path, dice: random.Random):
    """What to wait for, and how long after it the kill comes."""
    yield lambda: any(run.parent.glob(f".{run.name}.new*")), dice.uniform(0, 0.02)
    yield lambda: (run / "config.toml").exists(), 0.0
    yield lambda: any((run / "checkpoints").glob(".step-*.new")), dice.uniform(0, 0.002)
    for _ in range(8):
        seen = step_of(run) + dice.randint(1, 2)
        yield lambda seen=seen: step_of(run) >= seen, dice.uniform(0, 0.05)
    yield lambda: any((run / "checkpoints").glob(".step-*.new")), dice.uniform(0, 0.002)
    yield lambda: (run / "model.safetensors").exists(), 0.0


def write_rows(path: Path) -> None:
    """Some rows to learn from."""
    dice = random.Random(0)
    lines = [f"{dice.choice('abc') * dice.randint(2, 9)}{n},{'xy'[n % 2]}" for n in range(97)]
    path.write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    """Write the data, train both runs, and tell at which steps one of them was killed."""
    sys.modules.update(dict.fromkeys(SLOW))  # as if they were not installed
    dice = random.Random(0)
    write_rows(folder / "rows.csv")
    wait(attempt(folder / "peace"))
    run, kills, mess = folder / "killed", [], 0
    for until, delay in moments(run, dice):
        if wait(attempt(run), until, delay):
            kills.append(step_of(run))
            mess = max(mess, len(list((run / "checkpoints").glob("*step-*"))))
    if not (run / "report.json").exists():
        wait(attempt(run))
    print(json.dumps({"kills": kills, "mess": mess}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
