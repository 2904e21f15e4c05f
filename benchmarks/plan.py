"""How well `glassformer plan` predicts the time of a training, from start to report.

    python benchmarks/plan.py                                     # five runs that suit this machine
    python benchmarks/plan.py "classify reviews.csv --epochs 2"   # others: what follows `train`

Each run is planned and then trained with the same options, each in a process of its own, as from a
shell. The time of the training is that of its process, with its imports. Keep the machine idle.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from glassformer.terminal import aligned, print_line

CPU = (
    "classify languages --epochs 8 --no-pretrain",
    "translate dates --steps 300",
    "generate python-reference --steps 300",
    "recognise digits --steps 800",
    "transcribe morse --steps 80",
)
GPU = (
    "translate multi30k-en-de --size base --steps 400",
    "classify imdb --no-pretrain --steps 300",
    "translate cmudict --steps 600",
    "generate tinyshakespeare --steps 600",
    "translate tatoeba-de-en --steps 500",
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The seconds of a run, predicted by part and measured as a whole."""

    command: str
    parts: dict[str, float]
    actual: float

    @property
    def predicted(self) -> float:
        """The predicted seconds in all."""
        return sum(self.parts.values())

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of the time taken."""
        return abs(self.predicted / self.actual - 1)

    def cells(self) -> tuple[str, ...]:
        """A row of the table."""
        times = f"{self.predicted:.1f} s", f"{self.actual:.1f} s"
        parts = ", ".join(f"{name} {seconds:.1f}" for name, seconds in self.parts.items())
        return self.command, *times, f"{self.predicted / self.actual:.2f}", parts


def glassformer(verb: str, *arguments: str) -> str:
    """What a command prints, in a process of its own."""
    command = [sys.executable, "-m", "glassformer", verb, *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def compare(command: str, device: str, scratch: Path) -> Comparison:
    """Plan a run and train it."""
    options = [*shlex.split(command), "--device", device, "--run", str(scratch / "run")]
    planned = json.loads(glassformer("plan", *options, "--json", "--quiet"))["seconds"]
    started = time.perf_counter()
    glassformer("train", *options, "--quiet")
    actual = time.perf_counter() - started
    del planned["in all"]
    return Comparison(command, planned, actual)


def main() -> None:
    """Print a table of all runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN")
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    on_gpu = args.device != "cpu" and torch.cuda.is_available()
    found = []
    for command in args.runs or (GPU if on_gpu else CPU):
        with tempfile.TemporaryDirectory(prefix="glassformer-") as scratch:
            try:
                found.append(compare(command, args.device, Path(scratch)))
            except subprocess.CalledProcessError as error:
                print_line(f"left out: {command}: exit code {error.returncode}", stderr=True)
                continue
        print_line(*found[-1].cells(), stderr=True)
    if not found:
        sys.exit(1)
    head = ("run", "predicted", "actual", "ratio", "predicted parts, seconds")
    for line in aligned([head, *(one.cells() for one in found)]).split("\n"):
        print_line(line)
    errors = [one.error for one in found]
    print_line(f"median error {median(errors):.0%}, largest {max(errors):.0%}")


if __name__ == "__main__":
    main()
