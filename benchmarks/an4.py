"""AN4 on one GPU: variants of the recipe, encoders of equal size, and CTC against attention.

    python benchmarks/an4.py choose runs/choose    # on held-out speakers; no test row is read
    python benchmarks/an4.py table runs/table      # the recipe with three seeds, and the table

Each training is a process of its own; all of them share the GPU. What is asked for after the folder
are the names of some trainings; the default is all of them.
"""

import argparse
import csv
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from glassformer.data.catalog import open_entry
from glassformer.runs.recipes import RECIPES

ENCODERS = {
    "transformer": ("block=transformer", "depth=12"),
    "conformer": (),
    "branchformer": ("block=branchformer", "depth=12"),
    "e-branchformer": ("block=e-branchformer", "depth=5"),
}  # of 5.1 to 5.4 million parameters
LOSSES = {"ctc": ("task.ctc_weight=1",), "attention": ("task.ctc_weight=0", "task.intermediate=0")}
CHOICES = {
    "recipe": (),
    "of-each-recording": ("task.normalise=recording",),
    "more-dropout": ("model.encoder.dropout=0.2", "model.decoder.dropout=0.2"),
    "lower-rate": ("train.optimiser.lr=1e-3",),
    "words": ("data.tokenizer.kind=words",),
    "transformer": tuple(f"model.encoder.{one}" for one in ENCODERS["transformer"]),
    "fewer-masks": ("task.masking.times=2", "task.masking.bins=10"),
    "more-speeds": ("task.augment.speeds=[0.85, 0.95, 1.05, 1.15]",),
    "not-halfway": ("task.intermediate=0",),
    "subwords": ("data.tokenizer.kind=bpe", "data.tokenizer.vocabulary=320"),
    "wider": ("model.encoder.dim=256", "model.decoder.dim=256"),
}
SEEDS = (0, 1, 2)


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
        sets = [f"--set={one}" for one in (*settings, *more, "machine.threads=1")]
        return [*common, data, "--run", str(folder / name), "--seed", str(seed), *sets]

    if kind == "choose":
        table = str(without_test(folder))
        held_out = ("data.test_share=0", "data.valid_share=0.2")
        return {name: command(name, table, (*more, *held_out), 0) for name, more in CHOICES.items()}
    parts = {name: tuple(f"model.encoder.{x}" for x in some) for name, some in ENCODERS.items()}
    parts |= LOSSES
    return {
        f"{name}-{seed}": command(f"{name}-{seed}", "an4", more, seed)
        for name, more in parts.items()
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


if __name__ == "__main__":
    main()
