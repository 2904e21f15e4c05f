"""The loss of a run on the validation text of `tinyshakespeare`, by nanoGPT's own estimate.

    glassformer reproduce tinyshakespeare --run runs/shakespeare
    python benchmarks/shakespeare.py runs/shakespeare

nanoGPT reports the mean loss of 200 batches of 64 blocks, which begin anywhere in the text and see
nothing before; so most characters are guessed from fewer than 256. Beside it, the loss over all of
the text by sliding windows, as in the report of the run.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

import glassformer
from glassformer.core.layout import Layout
from glassformer.data.catalog import open_entry
from glassformer.terminal import print_line

BLOCK, BATCH, BATCHES = 256, 64, 200


@torch.no_grad()
def estimate(run: glassformer.Run, tokens: np.ndarray, batches: int) -> tuple[float, float]:
    """The mean loss of random blocks, and its standard error over batches."""
    rng, losses, device = np.random.default_rng(0), [], run.machine.device
    layout = Layout.packed(torch.full((BATCH,), BLOCK)).to(device)
    for _ in range(batches):
        starts = rng.integers(len(tokens) - BLOCK, size=BATCH)
        blocks = torch.from_numpy(tokens[starts[:, None] + np.arange(BLOCK + 1)]).to(device)
        ids, labels = blocks[:, :-1].reshape(-1), blocks[:, 1:].reshape(-1)
        with run.machine.autocast():
            losses.append(run.model(ids, layout=layout, labels=labels).float().mean().item())
    return float(np.mean(losses)), float(np.std(losses) / len(losses) ** 0.5)


def main() -> None:
    """Print both losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--batches", type=int, default=BATCHES)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    run = glassformer.load(args.run, device=args.device)
    [text] = [
        row["text"] for row in open_entry("tinyshakespeare").rows() if row["split"] == "valid"
    ]
    [tokens] = run.task.tokenizer.encode([text])
    loss, error = estimate(run, tokens.astype(np.int64), args.batches)
    print_line(f"nanoGPT's estimate, {args.batches} batches: {loss:.4f} (SE {error:.4f})")
    found = run.report["scores"]["this model"]["loss"]["value"]
    print_line(f"all of the text, sliding windows: {found:.4f}")


if __name__ == "__main__":
    main()
