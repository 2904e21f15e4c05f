"""Trains one run in peace and others that are hit by signals and a full disk, for test_faulting.py.

A program of its own: it imports what it needs once and forks a process for each attempt. Usage:
faulting.py FOLDER; says on standard output how each attempt ended, as JSON.
"""

import json
import os
import random
import resource
import signal
import sys
import time
from importlib import import_module
from pathlib import Path

import torch

from glassformer.cli.app import main as glassformer

NEEDED = ("glassformer.runs.api", "glassformer.tasks.classify.job")  # once, not in every fork
SLOW = ("sklearn", "torch.utils.tensorboard")  # to import, and no part of what is tried
SETTINGS = (
    *("model.encoder.dim=16", "model.encoder.depth=1", "model.encoder.attention.heads=2"),
    *("model.encoder.dropout=0.2", "data.batch_tokens=64", "data.tokenizer.kind=characters"),
    *("train.validate_every=40", "train.log_every=10", "machine.threads=1"),
)
STEPS = 120
SMALL = 4096  # bytes; every file of weights is larger


def attempt(words: list[str], log: Path, largest_file: int | None = None) -> int:
    """Run a command in a new process, its words on standard error going to a log; its id."""
    process = os.fork()
    if process:
        return process
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    torch.set_num_threads(1)
    os._exit(glassformer(words))


def ended(process: int, *signals: tuple[int, object]) -> int:
    """How a process ends, after it got signals, each when something holds; as a shell says it."""
    for number, when in signals:
        while not when():
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.001)
        os.kill(process, number)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def main(folder: Path) -> None:
    """Write the data, make all runs, and tell how each attempt ended."""
    sys.modules.update(dict.fromkeys(SLOW))  # as if they were not installed
    for name in NEEDED:
        import_module(name)
    dice = random.Random(0)
    lines = [f"{dice.choice('abc') * dice.randint(2, 9)}{n},{'xy'[n % 2]}" for n in range(97)]
    (folder / "rows.csv").write_text("text,label\n" + "\n".join(lines) + "\n", encoding="utf-8")
    asked = ["--steps", str(STEPS), "--no-pretrain", *(w for s in SETTINGS for w in ("--set", s))]
    told = {}

    def learn(name: str, *signals) -> None:
        words = ["train", "classify", str(folder / "rows.csv"), "--run", str(folder / name), *asked]
        told[name] = ended(attempt(words, folder / f"{name}.log"), *signals)

    def resume(name: str, what: str, **options) -> None:
        process = attempt(["resume", str(folder / name)], folder / f"{what}.log", **options)
        told[what] = ended(process)

    def begun(name: str):
        metrics = folder / name / "metrics.jsonl"
        return lambda: metrics.exists() and metrics.stat().st_size > 0

    learn("peace")
    learn("int", (signal.SIGINT, begun("int")))
    resume("int", "int-again")
    learn("term", (signal.SIGTERM, begun("term")))
    told["left"] = sorted(path.name for path in (folder / "term" / "checkpoints").iterdir())
    resume("term", "term-full", largest_file=SMALL)
    told["left-full"] = sorted(path.name for path in (folder / "term" / "checkpoints").iterdir())
    resume("term", "term-again")
    said = folder / "twice.log"
    learn(
        "twice",
        (signal.SIGINT, begun("twice")),
        (signal.SIGINT, lambda: "repeat to stop immediately" in said.read_text()),
    )
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
