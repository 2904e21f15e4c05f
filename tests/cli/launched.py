"""Gives commands to two processes that train together, for test_torchrun.py; started by torchrun.

Usage: launched.py FOLDER WORDS...: training on a file that is not there, then what the words say,
which is asked to stop on the way, then `resume`. Each process leaves in FOLDER how they ended.
"""

import json
import signal
import sys
from pathlib import Path

from glassformer import processes
from glassformer.cli.app import main
from glassformer.training import loop

SLOW = ("sklearn", "torch.utils.tensorboard")  # to import, and no part of what is tried
STOP = 20


def should_stop(words: list[str]) -> int:
    """How a training ends that gets a signal at a step, as torchrun sends it to all processes."""
    accumulate_gradients, steps = loop.accumulate_gradients, []

    def counted(*args, **options):
        steps.append(len(steps))
        if len(steps) == STOP:
            signal.raise_signal(signal.SIGTERM)
        return accumulate_gradients(*args, **options)

    loop.accumulate_gradients = counted
    try:
        return main(words)
    finally:
        loop.accumulate_gradients = accumulate_gradients


def give_commands(folder: Path, words: list[str]) -> None:
    sys.modules.update(dict.fromkeys(SLOW))  # as if they were not installed
    run = str(folder / "two")
    with processes.joined():  # once: PyTorch cannot always meet again
        codes = [
            main(["train", "classify", str(folder / "nowhere.csv")]),
            should_stop([*words, "--run", run]),
            main(["resume", run, "--json"]),
        ]
    (folder / f"codes-{processes.rank()}.json").write_text(json.dumps(codes), encoding="utf-8")


if __name__ == "__main__":
    give_commands(Path(sys.argv[1]), sys.argv[2:])
