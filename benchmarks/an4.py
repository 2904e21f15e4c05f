"""AN4 on one GPU: variants of the recipe, encoders of equal size, and CTC against attention.

    python benchmarks/an4.py choose runs/choose    # on held-out speakers; no test row is read
    python benchmarks/an4.py table runs/table      # the recipe with three seeds, and the table

Each training is a process of its own; all of them share the GPU. Names after the folder select some
of the trainings. With --limit, those still running after so many seconds are ended, and the table
shows what they reached on the validation rows.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from glassformer.data.catalog import open_entry
from glassformer.runs.recipes import RECIPES

NO_CONVOLUTION = "-model.encoder.convolution.width"  # a setting that is left out
ENCODERS = {
    "transformer": ("model.encoder.block=transformer", "model.encoder.depth=12", NO_CONVOLUTION),
    "conformer": (),
    "branchformer": ("model.encoder.block=branchformer", "model.encoder.depth=12"),
    "e-branchformer": ("model.encoder.block=e-branchformer", "model.encoder.depth=5"),
}  # models of 7.4 to 7.7 million parameters
LOSSES = {"ctc": ("task.ctc_weight=1",), "attention": ("task.ctc_weight=0", "task.intermediate=0")}
WORDS = ("data.tokenizer.kind=words",)
MORE_MASKS = ("task.masking.times=4", "task.masking.bins=20")
CHOICES = {
    "recipe": (),
    "words": WORDS,
    "more-masks": MORE_MASKS,
    "words-more-masks": (*WORDS, *MORE_MASKS),
    "more-dropout": ("model.encoder.dropout=0.2", "model.decoder.dropout=0.2"),
    "lower-rate": ("train.optimiser.lr=1e-3",),
    "smaller-batches": ("data.batch_tokens=2048",),
    "deeper": ("model.encoder.dim=144", "model.encoder.depth=10", "model.decoder.dim=144"),
}
SHARED = ("machine.threads=1", "data.workers=2")  # of each training: all share the processor
SEEDS = (0, 1, 2)
STUDENT = (12.71, 4.30)  # of two and of three seeds: the 97.5 % quantiles of Student's t


def settings_of(values: dict[str, Any], name: str = "") -> Iterator[str]:
    """Nested settings, each written as key=value."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from settings_of(value, f"{name}{key}.")
        else:
            yield f"{name}{key}={value if isinstance(value, str) else json.dumps(value)}"


def without_test(folder: Path) -> Path:
    """A table of the official training rows alone."""
    path = folder / "train.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("audio", "text", "speaker"))
        for row in open_entry("an4").rows():
            if row["split"] == "train":
                writer.writerow([row[name] for name in ("audio", "text", "speaker")])
    return path


def trainings(kind: str, folder: Path, steps: int | None) -> dict[str, list[str]]:
    """The command of each training, by name."""
    [stage] = tomllib.loads(RECIPES["an4"].read_text(encoding="utf-8"))["stage"]
    settings = list(settings_of(stage["values"]))
    common = [sys.executable, "-m", "glassformer", "train", "transcribe", "--quiet", "--group"]
    common += ["speaker", "--steps", str(steps or stage["steps"])]

    def command(name: str, data: str, more: tuple[str, ...], seed: int) -> list[str]:
        left_out = {one[1:] for one in more if one.startswith("-")}
        kept = [one for one in settings if one.partition("=")[0] not in left_out]
        given = (*kept, *(one for one in more if not one.startswith("-")), *SHARED)
        sets = [f"--set={one}" for one in given]
        return [*common, data, "--run", str(folder / name), "--seed", str(seed), *sets]

    if kind == "choose":
        table = str(without_test(folder))
        held_out = ("data.test_share=0", "data.valid_share=0.2")
        return {name: command(name, table, (*more, *held_out), 0) for name, more in CHOICES.items()}
    return {
        f"{name}-{seed}": command(f"{name}-{seed}", "an4", more, seed)
        for name, more in (ENCODERS | LOSSES).items()
        for seed in SEEDS
    }


def show(folder: Path, names: list[str]) -> None:
    """What each training reached."""
    table = Table("training", "parameters", "WER, %", "interval", "CER, %", "training", "speed")
    for name in names:
        path = folder / name / "report.json"
        if not path.exists():
            table.add_row(name, "", "", f"no report: {last_validation(folder / name)}")
            continue
        report = json.loads(path.read_text(encoding="utf-8"))
        scores, facts = next(iter(report["scores"].values())), report["facts"]
        wer, cer = scores["wer"], scores["cer"]
        speed = next((note for note in report["notes"] if "real-time factor" in note), "")
        table.add_row(
            name,
            facts["parameters"],
            f"{100 * wer['value']:.1f}",
            f"{100 * wer['low']:.1f} ... {100 * wer['high']:.1f}",
            f"{100 * cer['value']:.1f}",
            facts["training time"],
            speed.partition(":")[0],
        )
    Console(width=140).print(table)


def last_validation(run: Path) -> str:
    """The last score of a training that did not end, of greedy search."""
    path = run / "metrics.jsonl"
    events = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    for event in map(json.loads, reversed(events)):
        if "scores" in event:
            wer, step = 100 * event["scores"]["wer"], event["step"]
            return f"{wer:.1f} on validation rows at step {step:,}"
    return f"see {run}.log"


def show_means(folder: Path, names: list[str]) -> None:
    """The mean of the seeds of each setting, with an interval from how much they differ."""
    rates = defaultdict(list)
    for name in names:
        path = folder / name / "report.json"
        if path.exists():
            scores = next(iter(json.loads(path.read_text(encoding="utf-8"))["scores"].values()))
            rates[name.rpartition("-")[0]].append(100 * scores["wer"]["value"])
    table = Table("setting", "seeds", "mean WER, %", "95 % interval")
    for name, some in rates.items():
        mean, count = statistics.mean(some), len(some)
        interval = ""
        if count > 1:
            half = STUDENT[count - 2] * statistics.stdev(some) / count**0.5
            interval = f"{max(0.0, mean - half):.1f} ... {mean + half:.1f}"
        table.add_row(name, str(count), f"{mean:.1f}", interval)
    Console(width=140).print(table)


def main() -> None:
    """Train side by side, and show a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("choose", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--steps", type=int, help="of each training; by default, as in the recipe")
    parser.add_argument("--limit", type=float, help="seconds for all trainings")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    next(iter(open_entry("an4").rows()))  # unpacks it once, before many processes would
    commands = trainings(args.kind, args.folder, args.steps)
    names = args.names or list(commands)
    running, started = [], time.monotonic()
    for name in names:
        with (args.folder / f"{name}.log").open("w", encoding="utf-8") as log:
            running.append(subprocess.Popen(commands[name], stdout=log, stderr=log))
    for process in running:
        left = None if args.limit is None else max(0.0, started + args.limit - time.monotonic())
        try:
            process.wait(left)
        except subprocess.TimeoutExpired:
            process.kill()
    show(args.folder, names)
    if args.kind == "table":
        show_means(args.folder, names)


if __name__ == "__main__":
    main()
