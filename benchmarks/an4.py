"""AN4 on one GPU: variants of the recipe, encoders of equal size, and CTC against attention.

    python benchmarks/an4.py choose runs/choose    # on held-out speakers; no test row is read
    python benchmarks/an4.py table runs/table      # the recipe with three seeds, and the table

Each training is a process of its own; all of them share the GPU. What is asked for after the folder
are the names of some trainings; the default is all of them.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
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
CHOICES = {
    "recipe": (),
    "words": ("data.tokenizer.kind=words",),
    "more-masks": ("task.masking.times=4", "task.masking.bins=20"),
    "more-dropout": ("model.encoder.dropout=0.2", "model.decoder.dropout=0.2"),
    "of-each-recording": ("task.normalise=recording",),
    "lower-rate": ("train.optimiser.lr=1e-3",),
    "larger-batches": ("data.batch_tokens=8192", "train.optimiser.lr=3e-3"),
    "smaller-batches": ("data.batch_tokens=2048", "train.optimiser.lr=1e-3"),
}
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


def trainings(kind: str, folder: Path, epochs: float | None) -> dict[str, list[str]]:
    """The command of each training, by name."""
    [stage] = tomllib.loads(RECIPES["an4"].read_text(encoding="utf-8"))["stage"]
    settings = list(settings_of(stage["values"]))
    common = [sys.executable, "-m", "glassformer", "train", "transcribe", "--quiet", "--group"]
    common += ["speaker", "--epochs", str(epochs or stage["epochs"])]

    def command(name: str, data: str, more: tuple[str, ...], seed: int) -> list[str]:
        left_out = {one[1:] for one in more if one.startswith("-")}
        kept = [one for one in settings if one.partition("=")[0] not in left_out]
        given = (*kept, *(one for one in more if not one.startswith("-")), "machine.threads=1")
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
            table.add_row(name, f"failed: see {folder / name}.log")
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
    parser.add_argument("--epochs", type=float)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    next(iter(open_entry("an4").rows()))  # unpacks it once, before many processes would
    commands = trainings(args.kind, args.folder, args.epochs)
    names = args.names or list(commands)
    running = []
    for name in names:
        with (args.folder / f"{name}.log").open("w", encoding="utf-8") as log:
            running.append(subprocess.Popen(commands[name], stdout=log, stderr=log))
    for process in running:
        process.wait()
    show(args.folder, names)
    if args.kind == "table":
        show_means(args.folder, names)


if __name__ == "__main__":
    main()
