"""Longer texts than in training: perplexity by the length of the window, for every position scheme.

    python benchmarks/length.py train runs/length    # a small model for each, four at a time
    python benchmarks/length.py score runs/length    # the table
    python benchmarks/length.py draw docs/results/studies.md docs/pictures/length.png

Models of `tinyshakespeare` by characters are trained with windows of 256, and read the validation
text in windows of up to 4,096, in one pass each. Rotary positions are also scaled, as long as the
window is longer than in training; this needs no training. The picture is drawn from the numbers of
the table, wherever that stands, so that it can be drawn again without the models.
"""

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

import glassformer
from glassformer.config.layers import POSITION_NAMES, PositionConfig, ScalingConfig
from glassformer.core.layout import Layout
from glassformer.data.catalog import open_entry
from glassformer.models.build import build_language_model
from glassformer.terminal import print_line

TRAINED, LENGTHS = 256, (256, 512, 1024, 2048, 4096)
TOGETHER = 4  # trainings
SCALINGS = {"linear": {}, "ntk": {}, "yarn": {"trained_length": TRAINED}}
LOOKS = {  # colour and line of each row
    "transformer-xl": ("#0072b2", "-"),
    "shaw": ("#0072b2", "--"),
    "alibi": ("#009e73", "-"),
    "t5": ("#009e73", "--"),
    "rotary": ("#d55e00", "-"),
    "rotary, linear": ("#d55e00", ":"),
    "rotary, ntk": ("#d55e00", "--"),
    "rotary, yarn": ("#d55e00", "-."),
    "sinusoidal": ("#8a4f7d", "-"),
    "learned": ("#8a4f7d", "--"),
    "none": ("#444444", "-"),
}
SETTINGS = (
    "data.test_share=0",
    "data.batch_tokens=8192",
    f"task.max_length={TRAINED}",
    "model.decoder.dim=256",
    "model.decoder.depth=6",
    "model.decoder.attention.heads=4",
    "model.decoder.attention.kv_heads=none",
    "model.decoder.feedforward.hidden=704",
    "model.decoder.dropout=0.2",
    "model.tie=false",
    "train.optimiser.kind=muon",
    "train.optimiser.lr=4e-3",
    "train.optimiser.weight_decay=0.1",
    "train.validate_every=200",
    "machine.threads=1",
)


def train(folder: Path, steps: int, schemes: list[str]) -> None:
    """Train a model for each scheme."""
    folder.mkdir(parents=True, exist_ok=True)

    def run(name: str) -> None:
        more = [f"model.decoder.position={name}"]
        if name == "learned":  # a table with rows that no window of training reaches
            more.append(f"model.decoder.max_length={LENGTHS[-1]}")
        settings = [f"--set={one}" for one in (*SETTINGS, *more)]
        command = [sys.executable, "-m", "glassformer", "train", "generate", "tinyshakespeare"]
        command += ["--run", str(folder / name), "--steps", str(steps), *settings]
        with (folder / f"{name}.log").open("w", encoding="utf-8") as log:
            subprocess.run(command, stdout=log, stderr=log, check=False)

    with ThreadPoolExecutor(TOGETHER) as pool:
        list(pool.map(run, schemes))


def variants(name: str, length: int) -> Iterator[tuple[str, PositionConfig]]:
    """A scheme as it was trained, and scaled to a length."""
    yield name, PositionConfig(name)
    for kind, more in SCALINGS.items() if name == "rotary" else ():
        scaling = ScalingConfig(kind=kind, factor=max(1.0, length / TRAINED), **more)
        yield f"rotary, {kind}", PositionConfig(name, scaling=scaling)


@torch.no_grad()
def losses(run: glassformer.Run, position: PositionConfig, windows: np.ndarray) -> float:
    """The mean loss of some windows."""
    config, device = run.config.model, run.machine.device
    assert config.decoder is not None
    config = replace(config, decoder=replace(config.decoder, position=position))
    model = build_language_model(config, vocabulary=run.task.tokenizer.size)
    model.load_state_dict(run.model.state_dict())
    model, length = model.to(device).eval(), windows.shape[1] - 1
    total = 0.0
    for some in torch.from_numpy(windows).to(device).split(LENGTHS[-1] // length):
        layout = Layout.packed(torch.full((len(some),), length)).to(device)
        ids, labels = some[:, :-1].reshape(-1), some[:, 1:].reshape(-1)
        with run.machine.autocast():
            nll = model(ids, layout=layout, labels=labels)
        total += nll.float().sum().item()
    return total / (len(windows) * length)


def score(folder: Path, schemes: list[str], device: str) -> dict[str, list[float]]:
    """By scheme: perplexity for each length of the window, over the same characters."""
    [text] = [
        row["text"] for row in open_entry("tinyshakespeare").rows() if row["split"] == "valid"
    ]
    found: dict[str, list[float]] = {}
    for name in schemes:
        run = glassformer.load(folder / name, device=device)
        [tokens] = run.task.tokenizer.encode([text])
        tokens = tokens.astype(np.int64)
        end = (len(tokens) - 1) // LENGTHS[-1] * LENGTHS[-1]
        for length in LENGTHS:
            windows = tokens[np.arange(0, end, length)[:, None] + np.arange(length + 1)]
            for variant, position in variants(name, length):
                nll = losses(run, position, windows)
                found.setdefault(variant, []).append(float(np.exp(nll)))
    return found


def rows_of(page: Path) -> dict[str, list[float]]:
    """The rows of the table in a page: those with a perplexity for each length."""
    cells = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in page.read_text(encoding="utf-8").splitlines()
        if re.fullmatch(rf"\| [^|]+( \| \d+\.\d+){{{len(LENGTHS)}}} \|", line)
    ]
    return {name: [float(value) for value in values] for name, *values in cells}


def apart(places: list[float], least: float) -> list[float]:
    """The same places in their order, moved up where two are closer than `least`."""
    found: list[float] = []
    for place in places:
        found.append(max(place, found[-1] + least) if found else place)
    return found


def chart(rows: dict[str, list[float]], path: Path) -> None:
    """Perplexity by the length of the window: a line for each scheme, named at its end."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    ordered = sorted(rows, key=lambda name: rows[name][-1])
    ends = apart([float(np.log(rows[name][-1])) for name in ordered], least=0.2)
    for name, end in zip(ordered, ends, strict=True):
        color, style = LOOKS[name]
        axes.plot(LENGTHS, rows[name], style, color=color, marker="o", markersize=3, linewidth=1.4)
        axes.annotate(
            name,
            (LENGTHS[-1], rows[name][-1]),
            (LENGTHS[-1] * 1.25, float(np.exp(end))),
            color=color,
            fontsize=8,
            va="center",
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.6, "relpos": (0, 0.5)},
        )
    axes.set(xscale="log", yscale="log", xlim=(230, 4096 * 2.8), ylim=(3.6, 400))
    axes.set(xlabel="characters in a window (trained with 256)", ylabel="perplexity")
    axes.set_xticks(LENGTHS, [f"{n:,}" for n in LENGTHS])
    axes.set_yticks([5, 10, 20, 50, 100, 200], ["5", "10", "20", "50", "100", "200"])
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main() -> None:
    """Train, score or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("train", "score", "draw"))
    parser.add_argument("folder", type=Path, help="of the runs; to draw, a page with the table")
    parser.add_argument("picture", type=Path, nargs="?", default=Path("length.png"))
    parser.add_argument("--schemes", nargs="+", choices=POSITION_NAMES, default=POSITION_NAMES)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    if args.action == "train":
        train(args.folder, args.steps, args.schemes)
    elif args.action == "score":
        for name, row in score(args.folder, args.schemes, args.device).items():
            print_line(f"| {name} | {' | '.join(f'{one:.2f}' for one in row)} |")
    else:
        chart(rows_of(args.folder), args.picture)


if __name__ == "__main__":
    main()
