"""Break the code in small ways, one at a time, and see that the tests notice.

    python tests/try_mutants.py [--only WORDS]

The breakages and their format are in mutants.txt beside this file. Each is applied to a copy of the
project, so the working tree is never touched. The tests must pass before anything is broken;
otherwise nothing could be learnt from their failing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "examples", "recipes", "pyproject.toml")
AT_A_TIME = 2
COLOURS = {"caught": "green", "SURVIVED": "bold red", "broken": "bold yellow"}


@dataclass(frozen=True)
class Mutant:
    """One small breakage, and the tests that should notice it."""

    title: str
    file: str
    tests: tuple[str, ...]
    old: str
    new: str


@dataclass(frozen=True)
class Verdict:
    """How the tests took it: caught, SURVIVED, or broken where they could not even run."""

    word: str
    seconds: float
    remark: str = ""


def read_mutants(text: str) -> list[Mutant]:
    """The mutants a text describes.

    >>> text = "== off by one\\nin src/a.py\\ntests test_a.py\\n-    a < b\\n+    a <= b\\n"
    >>> (mutant,) = read_mutants(text)
    >>> mutant.title, mutant.tests, mutant.old, mutant.new
    ('off by one', ('test_a.py',), '    a < b', '    a <= b')
    """
    return [read_one(block.splitlines()) for block in ("\n" + text).split("\n== ")[1:]]


def read_one(lines: Sequence[str]) -> Mutant:
    title, *rest = lines

    def after(mark: str) -> list[str]:
        return [line.removeprefix(mark) for line in rest if line.startswith(mark)]

    (file,), (tests,) = after("in "), after("tests ")
    return Mutant(title, file, tuple(tests.split()), "\n".join(after("-")), "\n".join(after("+")))


def places(mutant: Mutant, folder: Path) -> int:
    """How often the old lines stand in their file."""
    path = folder / mutant.file
    return (
        f"\n{path.read_text(encoding='utf-8')}".count(f"\n{mutant.old}\n") if path.exists() else 0
    )


def apply(mutant: Mutant, folder: Path) -> None:
    """Put the new lines where the old ones stand."""
    path = folder / mutant.file
    text = f"\n{path.read_text(encoding='utf-8')}"
    broken = text.replace(f"\n{mutant.old}\n", f"\n{mutant.new}\n")
    path.write_text(broken.removeprefix("\n"), encoding="utf-8")


def copy_project(folder: Path) -> None:
    for name in COPIED:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)


def run_tests(folder: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The tests of a copy, on the code of that copy."""
    surroundings = os.environ | {
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(folder / "src"),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not full and not cuda", *tests]
    return subprocess.run(
        command, cwd=folder, env=surroundings, capture_output=True, text=True, check=False
    )


def present(tests: Sequence[str]) -> list[str]:
    return [f"tests/{name}" for name in tests if (ROOT / "tests" / name).exists()]


def try_mutant(mutant: Mutant) -> Verdict:
    missing = ", ".join(name for name in mutant.tests if not (ROOT / "tests" / name).exists())
    remark = f"there is no {missing}" if missing else ""
    tests = present(mutant.tests)
    if not tests:
        return Verdict("SURVIVED", 0.0, remark)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        copy_project(Path(name))
        apply(mutant, Path(name))
        done = run_tests(Path(name), tests)
    seconds = time.perf_counter() - start
    if done.returncode == 0:
        return Verdict("SURVIVED", seconds, remark)
    if done.returncode == 1:
        return Verdict("caught", seconds)
    return Verdict("broken", seconds, (done.stdout + done.stderr).strip().splitlines()[-1])


def failing_unbroken(mutants: Sequence[Mutant]) -> list[str]:
    """The test files that fail before anything is broken."""

    def fails(test: str) -> bool:
        with tempfile.TemporaryDirectory() as name:
            copy_project(Path(name))
            return run_tests(Path(name), [test]).returncode != 0

    tests = sorted({test for mutant in mutants for test in present(mutant.tests)})
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        verdicts = track(pool.map(fails, tests), "unbroken", len(tests), transient=True)
        return [test for test, failed in zip(tests, verdicts, strict=True) if failed]


def report(mutants: Sequence[Mutant], verdicts: Sequence[Verdict]) -> Table:
    table = Table("mutant", "file", "verdict", title="What the tests notice", title_justify="left")
    table.add_column("seconds", justify="right")
    for mutant, verdict in zip(mutants, verdicts, strict=True):
        words = f"[{COLOURS[verdict.word]}]{verdict.word}[/] {verdict.remark}".strip()
        file = mutant.file.removeprefix("src/glassformer/")
        table.add_row(mutant.title, file, words, f"{verdict.seconds:.1f}")
    return table


def main(argv: Sequence[str] | None = None) -> int:
    """Try them; 0 when all are caught, 1 when one is not, 2 when nothing can be learnt."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="try those whose title contains this")
    only = parser.parse_args(argv).only
    text = (ROOT / "tests" / "mutants.txt").read_text(encoding="utf-8")
    mutants = [mutant for mutant in read_mutants(text) if only in mutant.title]
    if not mutants:
        print(f"no mutant has {only!r} in its title", file=sys.stderr)
        return 2
    for mutant in mutants:
        if (found := places(mutant, ROOT)) != 1:
            print(
                f"mutant {mutant.title!r}: its old lines stand {found} times in {mutant.file}, "
                f"not once; bring mutants.txt up to date",
                file=sys.stderr,
            )
            return 2
    if failing := failing_unbroken(mutants):
        print(f"mend these first, they fail unbroken: {', '.join(failing)}", file=sys.stderr)
        return 2
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        results = track(pool.map(try_mutant, mutants), "broken", len(mutants), transient=True)
        verdicts = list(results)
    console = Console()
    console.print(report(mutants, verdicts))
    caught = sum(verdict.word == "caught" for verdict in verdicts)
    console.print(f"{caught} of {len(mutants)} caught")
    return 0 if caught == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
