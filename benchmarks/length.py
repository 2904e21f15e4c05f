"""Longer texts than in training: perplexity against position, for every position scheme.

    python benchmarks/length.py train runs/length    # a small model for each, four at a time
    python benchmarks/length.py score runs/length    # the table, and runs/length/losses.json
    python benchmarks/length.py draw runs/length docs/pictures/length.png

Models of `tinyshakespeare` by characters are trained with windows of 256, and read the validation
text in windows of up to 4,096, in one pass each. Rotary positions are also scaled, as long as the
window is longer than in training; this needs no training.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
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
def losses(run: glassformer.Run, position: PositionConfig, windows: np.ndarray) -> np.ndarray:
    """The mean loss at every position of some windows."""
    config, device = run.config.model, run.machine.device
    assert config.decoder is not None
    config = replace(config, decoder=replace(config.decoder, position=position))
    model = build_language_model(config, vocabulary=run.task.tokenizer.size)
    model.load_state_dict(run.model.state_dict())
    model, length = model.to(device).eval(), windows.shape[1] - 1
    total = np.zeros(length)
    for some in torch.from_numpy(windows).to(device).split(LENGTHS[-1] // length):
        layout = Layout.packed(torch.full((len(some),), length)).to(device)
        ids, labels = some[:, :-1].reshape(-1), some[:, 1:].reshape(-1)
        with run.machine.autocast():
            nll = model(ids, layout=layout, labels=labels)
        total += nll.float().view(-1, length).sum(0).cpu().numpy()
    return total / len(windows)


def score(folder: Path, schemes: list[str], device: str) -> dict[str, dict[str, list[float]]]:
    """By scheme: perplexity by length of the window, and the losses at each place of the longest.

    Windows of all lengths lie side by side and count the same characters.
    """
    [text] = [
        row["text"] for row in open_entry("tinyshakespeare").rows() if row["split"] == "valid"
    ]
    found: dict[str, dict[str, list[float]]] = {}
    for name in schemes:
        run = glassformer.load(folder / name, device=device)
        [tokens] = run.task.tokenizer.encode([text])
        tokens = tokens.astype(np.int64)
        end = (len(tokens) - 1) // LENGTHS[-1] * LENGTHS[-1]
        for length in LENGTHS:
            windows = tokens[np.arange(0, end, length)[:, None] + np.arange(length + 1)]
            for variant, position in variants(name, length):
                nll = losses(run, position, windows)
                row = found.setdefault(variant, {"perplexity": [], "places": []})
                row["perplexity"].append(float(np.exp(nll.mean())))
                row["places"] = nll.tolist()
    return found


def chart(found: dict[str, dict[str, list[float]]], path: Path) -> None:
    """Perplexity against position, in the longest windows, averaged over neighbours."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.2))
    edges = np.unique(np.geomspace(1, LENGTHS[-1], 40).astype(int))
    for name, row in found.items():
        nll = np.array(row["places"])
        means = [nll[a:b].mean() for a, b in pairwise(edges)]
        style = "--" if "," in name else "-"
        axes.plot(np.sqrt(edges[:-1] * edges[1:]), np.exp(means), style, label=name, linewidth=1.2)
    axes.axvline(TRAINED, color="grey", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", ylim=(3.5, 40), xlabel="position", ylabel="perplexity")
    axes.set_xticks([1, 16, 64, *LENGTHS], [str(n) for n in (1, 16, 64, *LENGTHS)])
    axes.minorticks_off()
    axes.set_yticks([4, 5, 7, 10, 20, 40], ["4", "5", "7", "10", "20", "40"])
    axes.legend(fontsize=7, ncol=2)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Train, score or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("train", "score", "draw"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("picture", type=Path, nargs="?", default=Path("length.png"))
    parser.add_argument("--schemes", nargs="+", choices=POSITION_NAMES, default=POSITION_NAMES)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    scored = args.folder / "losses.json"
    if args.action == "train":
        train(args.folder, args.steps, args.schemes)
    elif args.action == "score":
        found = score(args.folder, args.schemes, args.device)
        scored.write_text(json.dumps(found), encoding="utf-8")
        for name, row in found.items():
            print_line(f"| {name} | {' | '.join(f'{one:.2f}' for one in row['perplexity'])} |")
    else:
        chart(json.loads(scored.read_text(encoding="utf-8")), args.picture)


if __name__ == "__main__":
    main()
