"""A frontend of one's own: skeletons, some joints that move, as vectors for an encoder.

Run from this folder; the first line makes gestures to try it with, the others learn them:

    python skeletons.py gestures
    glassformer --allow-code train classify gestures/labels.csv --config classify.toml
    glassformer --allow-code train translate gestures/words.csv --config translate.toml
"""

import csv
import sys
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from glassformer import Layout

JOINTS, FRAMES = 5, (6, 12)
GESTURES = {"wave": (1.0, 0.0), "nod": (0.0, 1.0), "circle": (1.0, 1.0)}  # across, and up


class Skeletons(nn.Module):
    """One vector a frame: where the joints are, and how they have just moved."""

    def __init__(self, channels: int, dim: int) -> None:
        super().__init__()
        self.dim, self.to_vector = dim, nn.Linear(2 * channels, dim)

    def forward(self, samples: Tensor, layout: Layout) -> tuple[Tensor, Layout]:
        """From frames (B, T, channels) to vectors (B, T, dim), as many as before."""
        moved = samples.diff(dim=1, prepend=samples[:, :1])
        return self.to_vector(torch.cat([samples, moved], dim=-1)), layout


def gesture(name: str, rng: np.random.Generator) -> np.ndarray:
    """Frames of joints (T, JOINTS, 2) that swing across, up, or both."""
    phase = np.linspace(0, 2 * np.pi, rng.integers(*FRAMES)) + rng.uniform(0, 6)
    swing = np.stack([np.sin(phase), np.cos(phase)], axis=-1) * GESTURES[name]
    rest = rng.normal(size=(JOINTS, 2))
    return rest + swing[:, None] + rng.normal(scale=0.1, size=(len(phase), JOINTS, 2))


def make(folder: Path, count: int = 1200) -> None:
    """Gestures with a label each, and sequences of them that spell a sentence."""
    rng, rows = np.random.default_rng(0), {n: list[tuple[str, str]]() for n in ("labels", "words")}
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        words = rng.choice(list(GESTURES), size=1 if number % 2 else rng.integers(2, 5)).tolist()
        np.savez(folder / f"{number}.npz", np.concatenate([gesture(w, rng) for w in words]))
        rows["labels" if number % 2 else "words"].append((f"{number}.npz", " ".join(words)))
    for name, columns in {"labels": ("text", "label"), "words": ("source", "target")}.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([columns, *rows[name]])


if __name__ == "__main__":
    make(Path(sys.argv[1]))
