"""Train a small Transformer to reverse digits, then look inside.

    27183  ->  38172

An encoder reads the digits, a decoder writes them from the last to the first. To write a digit it
must attend to the right one, through cross-attention; the picture at the end shows it.
"""

import random

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from glassformer import Layout, build_transformer, encoder_decoder_of_size, watching
from glassformer.explaining.views.heatmap import labelled
from glassformer.models.transformer import Transformer

SYMBOLS = "0123456789>."  # the ten digits, a start, an end
LONGEST = 9
STEPS, BATCH, LR = 600, 64, 2e-3


def question(rng: random.Random) -> str:
    """Some digits to reverse."""
    return "".join(rng.choice("0123456789") for _ in range(rng.randint(3, LONGEST)))


def packed(texts: list[str]) -> tuple[torch.Tensor, Layout]:
    """Texts end to end as token ids, and their layout: a batch without padding."""
    tokens = [SYMBOLS.index(symbol) for text in texts for symbol in text]
    return torch.tensor(tokens), Layout.packed([len(text) for text in texts])


def loss_on(model: Transformer, digits: list[str]) -> torch.Tensor:
    """The cross-entropy of each next digit, given the true ones before it."""
    inputs, source = packed(digits)
    decoder_input, target = packed([">" + d[::-1] for d in digits])
    labels, _ = packed([d[::-1] + "." for d in digits])
    return F.cross_entropy(model(inputs, decoder_input, source=source, target=target), labels)


@torch.no_grad()
def answer(model: Transformer, digits: list[str]) -> list[str]:
    """What the model writes, greedily, with a cache."""
    memory, caches = model.encode(*packed(digits)), model.decoder.new_caches()
    written = [torch.full((len(digits), 1), SYMBOLS.index(">"))]
    for _ in range(LONGEST + 1):
        logits = model.decode(written[-1], Layout.full(len(digits), 1), memory, caches)
        written.append(logits.argmax(-1))
    lines = ["".join(SYMBOLS[n] for n in row) for row in torch.cat(written[1:], dim=1).tolist()]
    return [line.partition(".")[0] for line in lines]


def look(model: Transformer, digits: str) -> Panel:
    """Where the decoder attends while it reverses these digits: its clearest head."""
    (inputs, source), (decoder_input, target) = packed([digits]), packed([">" + digits[::-1]])
    with watching(model) as (twin, maps):
        twin(inputs, decoder_input, source=source, target=target)
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
    title = f"{name}: {share:.0%} on the digit it writes"
    return Panel(labelled(seen, digits[::-1], digits), title=title, expand=False)


def train(model: Transformer, rng: random.Random, unseen: set[str], console: Console) -> None:
    """Train on fresh questions, never one of the unseen, with a progress bar."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LR, total_steps=STEPS)
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("training", total=STEPS)
        for step in range(STEPS):
            digits = [d for d in (question(rng) for _ in range(BATCH)) if d not in unseen]
            loss = loss_on(model, digits)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if step % 10 == 0:
                progress.update(bar, description=f"training   loss {loss.item():.3f}")
            progress.advance(bar)


def main() -> None:
    """Train, test on questions it has never seen, and show where it attends."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # more would only slow down small tensors
    rng, console = random.Random(0), Console()
    unseen = {question(rng) for _ in range(500)}
    config = encoder_decoder_of_size(
        "tiny", position="learned", max_length=LONGEST + 2, dropout=0.0
    )
    model = build_transformer(config, vocabulary=len(SYMBOLS))
    size = sum(weight.numel() for weight in model.parameters())
    console.print(f"An encoder-decoder of {size:,} parameters learns to reverse digits.")
    train(model, rng, unseen, console)

    questions = sorted(unseen)
    answers = dict(zip(questions, answer(model.eval(), questions), strict=True))
    table = Table("question", "answer", "", title="Questions it has never seen")
    for digits in questions[:: len(questions) // 8]:
        right = answers[digits] == digits[::-1]
        table.add_row(digits, answers[digits], "[green]right[/]" if right else "[red]wrong[/]")
    console.print(table)
    share = sum(written == digits[::-1] for digits, written in answers.items()) / len(questions)
    console.print(f"[bold]{share:.1%} of {len(questions)} right[/]")
    console.print(look(model, "271828459"))
    console.print(
        "[dim]A row is a digit it writes, a column one it reads; brighter means more attention.[/]"
    )


if __name__ == "__main__":
    main()
