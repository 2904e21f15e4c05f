"""Do 6 + 6 layers train with the norm before, after, or on both sides? They reverse digits.

python benchmarks/orders.py --device cuda --size base --steps 1000
"""

import argparse
import time

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.progress import track
from rich.table import Table

from glassformer import Layout, build_transformer, encoder_decoder_of_size
from glassformer.core.residual import ORDERS

ROWS, LENGTH, START = 256, 16, 11


def learn(order: str, size: str, steps: int, device: str, lr: float) -> list[float]:
    """Twenty values of the training loss."""
    torch.manual_seed(0)
    config = encoder_decoder_of_size(
        size, order=order, depth=6, position="learned", max_length=2 * LENGTH, dropout=0.0
    )
    model = build_transformer(config, vocabulary=START + 1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=steps)
    layout, start = Layout.full(ROWS, LENGTH, device), torch.full((ROWS, 1), START, device=device)
    losses = []
    for step in track(range(steps), description=order, console=Console(stderr=True)):
        digits = torch.randint(0, 10, (ROWS, LENGTH), device=device)
        labels = digits.flip(1)
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            decoder_input = torch.cat([start, labels[:, :-1]], 1)
            logits = model(digits, decoder_input, source=layout, target=layout)
        loss = F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if (step + 1) % max(steps // 20, 1) == 0:
            losses.append(loss.item())
    return losses


def main() -> None:
    """Train in each order and print the losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", default="base")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--lr", type=float, default=3e-4)
    args = parser.parse_args()
    table = Table("order", "halfway", "at the end", "seconds", title="Loss; chance is 2.30")
    for order in ORDERS:
        begin = time.perf_counter()
        losses = learn(order, args.size, args.steps, args.device, args.lr)
        seconds = time.perf_counter() - begin
        halfway = losses[len(losses) // 2 - 1]
        table.add_row(order, f"{halfway:.3f}", f"{losses[-1]:.3f}", f"{seconds:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
