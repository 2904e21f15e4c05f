"""Kills a training again and again, while it prepares, learns, validates and reports; `make soak`.

Whenever it has come to its end all the same, all it knows must be that of a run in peace, byte for
byte; then the next run begins. Usage: soaking.py [KILLS]
"""

import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from killing import SLOW, attempt, step_of, wait, write_rows
from rich.progress import Progress

LONGEST = 1.0  # seconds until a kill at any time; an attempt in peace takes about twice as long
CLOCKS = {
    "tokens_per_second",
    "data_wait",
    "facts",
    "title",
    "notes",
}  # what depends on time or on the name
TIMED = {"prediction.json", "report.json", "report.html", "command.txt", "checksums.json"}

Until = Callable[[], bool]


def contents(run: Path) -> dict[str, object]:
    """What must not depend on kills: every file, the log and the report but for their clocks."""
    found: dict[str, object] = {
        str(path.relative_to(run)): path.read_bytes()
        for path in (*run.glob("*"), *(run / "data").iterdir())
        if path.is_file() and path.name not in {*TIMED, "metrics.jsonl"} and path.name[0] != "."
    }
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    values = [*map(json.loads, lines), json.loads((run / "report.json").read_text("utf-8"))]
    found["told"] = [{k: v for k, v in value.items() if k not in CLOCKS} for value in values]
    known = json.loads((run / "checksums.json").read_text("utf-8"))
    found["checksums"] = {k: v for k, v in known.items() if k not in TIMED}
    return found


def moments(run: Path, dice: random.Random) -> dict[str, tuple[Until, float]]:
    """When to kill, by what is going on then, and how long after that has begun."""
    until, now, seen = time.monotonic() + dice.uniform(0, LONGEST), time.time(), step_of(run)
    temporary, model = f".{run.name}.new-*", run / "model.safetensors"
    return {
        "at any time": (lambda: time.monotonic() > until, 0.0),
        "while it makes its index": (
            lambda: any(run.parent.glob(f"{temporary}/data/*.npy*")),
            dice.uniform(0, 0.05),
        ),
        "while it validates": (
            lambda: step_of(run) > seen and validates(run),
            dice.uniform(0, 0.02),
        ),
        "while it reports": (
            lambda: model.exists() and model.stat().st_mtime > now,
            dice.uniform(0, 0.1),
        ),
    }


def validates(run: Path) -> bool:
    """Whether the newest checkpoint is of a step whose validation is under way."""
    state = run / "checkpoints" / f"step-{step_of(run)}" / "state.json"
    return state.exists() and json.loads(state.read_text("utf-8"))["unvalidated"]


def soak(folder: Path, kills: int, dice: random.Random) -> tuple[int, Counter[str]]:
    """Kill so many times; how many runs ended as the one in peace, and the kills by kind."""
    sys.modules.update(dict.fromkeys(SLOW))  # as if they were not installed
    write_rows(folder / "rows.csv")
    wait(attempt(folder / "peace"))
    expected, run, finished = contents(folder / "peace"), folder / "killed", 0
    done: Counter[str] = Counter()
    with Progress(transient=True) as progress:
        bar = progress.add_task(f"killing {kills} times", total=kills)
        while done.total() < kills:
            kind, (until, delay) = dice.choice(list(moments(run, dice).items()))
            if wait(attempt(run), until, delay):
                done[kind] += 1
                progress.advance(bar)
            if (run / "report.json").exists():
                compare(run, expected)
                finished += 1
    wait(attempt(run))
    compare(run, expected)
    return finished + 1, done


def compare(run: Path, expected: dict[str, object]) -> None:
    """Hold a finished run against the one in peace, and make room for the next."""
    found = contents(run)
    for name in expected.keys() | found.keys():
        if found.get(name) != expected.get(name):
            sys.exit(f"{run}: {name} differs from that of the run in peace")
    shutil.rmtree(run)


def main(kills: int) -> None:
    seed = random.randrange(2**32)
    with tempfile.TemporaryDirectory(prefix="glassformer-") as scratch:
        runs, done = soak(Path(scratch), kills, random.Random(seed))
    print(f"{kills} kills (seed {seed}): {', '.join(f'{n} {kind}' for kind, n in done.items())}")
    print(f"{runs} runs came to the same bytes as the one in peace")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
