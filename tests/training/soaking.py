"""Kills a training again and again at random moments; `make soak`.

Whenever it has come to its end all the same, its model and its log must be those of a run in
peace, byte for byte; then the next run begins. Usage: soaking.py [KILLS]
"""

import json
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from killing import SLOW, attempt, wait, write_rows
from rich.progress import track

LONGEST = 1.0  # seconds until a kill; an attempt in peace takes about twice as long


def contents(run: Path) -> tuple[bytes, list[dict]]:
    """What must not depend on kills: the model, and the log but for its clock."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    log = [{**json.loads(line), "tokens_per_second": 0} for line in lines]
    return (run / "model.safetensors").read_bytes(), log


def soak(folder: Path, kills: int, dice: random.Random) -> int:
    """Kill so many times; how many runs came to their end meanwhile, each as the one in peace."""
    sys.modules.update(dict.fromkeys(SLOW))  # as if they were not installed
    write_rows(folder / "rows.csv")
    wait(attempt(folder / "peace"))
    expected, run, finished = contents(folder / "peace"), folder / "killed", 0
    for _ in track(range(kills), f"killing {kills} times"):
        while not killed(run, dice.uniform(0, LONGEST)):
            finished += compare(run, expected)
        if (run / "report.json").exists():  # killed after its last word
            finished += compare(run, expected)
    wait(attempt(run))
    return finished + compare(run, expected)


def killed(run: Path, after: float) -> bool:
    """Go on with a run and kill it after some seconds. False when it came to its end before."""
    until = time.monotonic() + after
    return wait(attempt(run), lambda: time.monotonic() > until)


def compare(run: Path, expected: tuple[bytes, list[dict]]) -> int:
    """Hold a finished run against the one in peace, and make room for the next."""
    if contents(run) != expected:
        sys.exit(f"{run}: differs from the run in peace")
    shutil.rmtree(run)
    return 1


def main(kills: int) -> None:
    seed = random.randrange(2**32)
    with tempfile.TemporaryDirectory(prefix="glassformer-") as scratch:
        runs = soak(Path(scratch), kills, random.Random(seed))
    print(f"{kills} kills (seed {seed}): {runs} runs came to the same bytes as the one in peace")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
