"""Teach a small Transformer to read digits and say them backwards, then look inside.

    27183  ->  38172

An encoder reads the digits, a decoder says them from the last to the first. To say a digit it must
look at the right one, through cross-attention; the picture at the end shows where it looks.
"""

import random

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from glassformer import Layout, build_transformer, encoder_decoder_of_size, watching
from glassformer.explaining.terminal import labelled
from glassformer.models.transformer import Transformer

SYMBOLS = "0123456789>."  # the ten digits, a start, an end
LONGEST = 9
STEPS, BATCH, RATE = 600, 64, 2e-3


def question(dice: random.Random) -> str:
    """Some digits to be turned round."""
    return "".join(dice.choice("0123456789") for _ in range(dice.randint(3, LONGEST)))


def packed(texts: list[str]) -> tuple[torch.Tensor, Layout]:
    """Texts end to end as numbers, and whose is what: a batch without any padding."""
    numbers = [SYMBOLS.index(symbol) for text in texts for symbol in text]
    return torch.tensor(numbers), Layout.packed([len(text) for text in texts])


def loss_on(model: Transformer, digits: list[str]) -> torch.Tensor:
    """How surprised the model is by each next digit, given the true ones before it."""
    (read, source), (said, target) = packed(digits), packed([">" + d[::-1] for d in digits])
    follows, _ = packed([d[::-1] + "." for d in digits])
    return F.cross_entropy(model(read, said, source=source, target=target), follows)


@torch.no_grad()
def answer(model: Transformer, digits: list[str]) -> list[str]:
    """What the model says, digit by digit, through caches."""
    memory, caches = model.encode(*packed(digits)), model.decoder.new_caches()
    said = [torch.full((len(digits), 1), SYMBOLS.index(">"))]
    for _ in range(LONGEST + 1):
        scores = model.decode(said[-1], Layout.full(len(digits), 1), memory, caches)
        said.append(scores.argmax(-1))
    lines = ["".join(SYMBOLS[n] for n in row) for row in torch.cat(said[1:], dim=1).tolist()]
    return [line.partition(".")[0] for line in lines]


def look(model: Transformer, digits: str) -> Panel:
    """Where the decoder looks while it says these digits: its clearest head."""
    (read, source), (said, target) = packed([digits]), packed([">" + digits[::-1]])
    with watching(model) as (twin, maps):
        twin(read, said, source=source, target=target)
    clearest = max(
        (
            (seen.flip(1).diagonal().mean().item(), f"{name}, head {head}", seen)
            for name, weights in maps.items()
            if "cross_attention" in name
            for head, seen in enumerate(weights[0, :, :-1])
        ),
        key=lambda found: found[0],
    )
    share, name, seen = clearest
    title = f"{name}: {share:.0%} on the digit it says"
    return Panel(labelled(seen, digits[::-1], digits), title=title, expand=False)


def train(model: Transformer, dice: random.Random, unseen: set[str], console: Console) -> None:
    """Show it fresh questions, never one of the unseen, with a progress bar."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=STEPS)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("learning", total=STEPS)
        for step in range(STEPS):
            digits = [d for d in (question(dice) for _ in range(BATCH)) if d not in unseen]
            loss = loss_on(model, digits)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % 10 == 0:
                progress.update(bar, description=f"learning   loss {loss.item():.3f}")
            progress.advance(bar)


def main() -> None:
    """Train, ask questions it has never seen, and show where it looked."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # small tensors only wait on more
    dice, console = random.Random(0), Console()
    unseen = {question(dice) for _ in range(500)}
    config = encoder_decoder_of_size(
        "tiny", position="learned", max_length=LONGEST + 2, dropout=0.0
    )
    model = build_transformer(config, vocabulary=len(SYMBOLS))
    size = sum(weight.numel() for weight in model.parameters())
    console.print(f"An encoder-decoder of {size:,} parameters learns to say digits backwards.")
    train(model, dice, unseen, console)

    asked = sorted(unseen)
    answers = dict(zip(asked, answer(model.eval(), asked), strict=True))
    table = Table("question", "answer", "", title="Questions it has never seen")
    for digits in asked[:: len(asked) // 8]:
        right = answers[digits] == digits[::-1]
        table.add_row(digits, answers[digits], "[green]right[/]" if right else "[red]wrong[/]")
    console.print(table)
    share = sum(said == digits[::-1] for digits, said in answers.items()) / len(asked)
    console.print(f"[bold]{share:.1%} of {len(asked)} right[/]")
    console.print(look(model, "271828459"))
    console.print("[dim]A line is a digit it says, a column one it read; brighter is more.[/]")


if __name__ == "__main__":
    main()
