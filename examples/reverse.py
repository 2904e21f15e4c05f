"""Teach a small causal Transformer to read digits and say them backwards, then look inside.

    27183>  ->  38172.

Everything is built from the core: packed batches, a mask, a position scheme, attention and caches.
To say the last digit first, the model must look at the right place; the picture at the end shows
where it looks.
"""

import random

import torch
import torch.nn.functional as F
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor, nn

from glassformer import Cache, GrowingCache, Layout, MultiHeadAttention, causal, make_position
from glassformer.explaining.terminal import labelled

SYMBOLS = "0123456789>."
LONGEST = 9
DIM, HEADS, DEPTH = 64, 4, 2
STEPS, BATCH, RATE = 800, 64, 3e-3


class Block(nn.Module):
    """Look around, then think: attention and a feed-forward net, each added to what was there."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.feedforward_norm = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attention = MultiHeadAttention(DIM, HEADS)
        self.feedforward = nn.Sequential(
            nn.Linear(DIM, 4 * DIM), nn.ReLU(), nn.Linear(4 * DIM, DIM)
        )

    def forward(self, x: Tensor, layout: Layout, cache: Cache | None) -> Tensor:
        x = x + self.attention(self.attention_norm(x), mask=causal, layout=layout, cache=cache)
        return x + self.feedforward(self.feedforward_norm(x))


class Reverser(nn.Module):
    """Tokens in, scores for the next token out."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(SYMBOLS), DIM)
        self.position = make_position("learned", DIM, HEADS, max_length=2 * LONGEST + 2)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.norm = nn.LayerNorm(DIM)
        self.unembed = nn.Linear(DIM, len(SYMBOLS))

    def forward(self, tokens: Tensor, layout: Layout, caches: list[Cache] | None = None) -> Tensor:
        x = self.position.embed(self.embed(tokens), layout)
        for block, cache in zip(self.blocks, caches or [None] * DEPTH, strict=True):
            x = block(x, layout, cache)
        return self.unembed(self.norm(x))


def question(dice: random.Random) -> str:
    """Some digits to be turned round."""
    return "".join(dice.choice("0123456789") for _ in range(dice.randint(3, LONGEST)))


def encode(text: str) -> list[int]:
    """Symbols to numbers."""
    return [SYMBOLS.index(symbol) for symbol in text]


def loss_on(model: Reverser, digits: list[str]) -> Tensor:
    """How surprised the model is by the answers, in one packed batch without any padding."""
    texts = [f"{d}>{d[::-1]}." for d in digits]
    layout = Layout.packed([len(text) - 1 for text in texts])
    tokens = torch.tensor([n for text in texts for n in encode(text[:-1])])
    follows = torch.tensor([n for text in texts for n in encode(text[1:])])
    answers = torch.tensor([i >= len(d) for d in digits for i in range(2 * len(d) + 1)])
    return F.cross_entropy(model(tokens, layout)[answers], follows[answers])


@torch.no_grad()
def answer(model: Reverser, digits: list[str]) -> list[str]:
    """What the model says, read in one go and then spoken symbol by symbol through caches."""
    prompts = [encode(f"{d}>") for d in digits]
    layout = Layout.padded([len(prompt) for prompt in prompts])
    tokens = torch.tensor([p + [0] * (layout.longest - len(p)) for p in prompts])
    caches: list[Cache] = [GrowingCache() for _ in range(DEPTH)]
    scores = model(tokens, layout, caches)[torch.arange(len(digits)), layout.lengths - 1]
    said = [scores.argmax(-1)]
    for _ in range(LONGEST):
        step = caches[0].place(Layout.full(len(digits), 1))
        said.append(model(said[-1][:, None], step, caches)[:, 0].argmax(-1))
    lines = ["".join(SYMBOLS[n] for n in row) for row in torch.stack(said, 1).tolist()]
    return [line.partition(".")[0] for line in lines]


@torch.no_grad()
def look(model: Reverser, digits: str) -> Panel:
    """Where each answered digit was looked up: the last block's clearest head."""
    text = f"{digits}>{digits[::-1]}"
    layout = Layout.full(1, len(text))
    x = model.position.embed(model.embed(torch.tensor([encode(text)])), layout)
    sharpest, picture = 0.0, None
    for number, block in enumerate(model.blocks):
        weights = block.attention.weights(block.attention_norm(x), mask=causal, layout=layout)[0]
        asked = weights[:, len(digits) : -1, : len(digits)]  # from `>` on, what of the question?
        for head, seen in enumerate(asked):
            hits = seen.flip(1).diagonal().mean().item()
            if hits > sharpest:
                sharpest = hits
                title = (
                    f"block {number}, head {head}: {hits:.0%} of the attention on the digit to say"
                )
                picture = Panel(labelled(seen, digits[::-1], digits), title=title, expand=False)
        x = block(x, layout, None)
    return picture or Panel("no head looks at the digit it says next", expand=False)


def train(model: Reverser, dice: random.Random, unseen: set[str], console: Console) -> None:
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
    model = Reverser()
    size = sum(weight.numel() for weight in model.parameters())
    console.print(f"A causal Transformer of {size:,} parameters learns to say digits backwards.")
    train(model, dice, unseen, console)

    asked = sorted(unseen)
    right = [said == digits[::-1] for digits, said in zip(asked, answer(model, asked), strict=True)]
    table = Table("question", "answer", "", title="Questions it has never seen")
    for digits, said in zip(
        asked[:: len(asked) // 8], answer(model, asked[:: len(asked) // 8]), strict=True
    ):
        table.add_row(digits, said, "[green]right[/]" if said == digits[::-1] else "[red]wrong[/]")
    console.print(table)
    console.print(f"[bold]{sum(right)} of {len(right)} right[/] ({sum(right) / len(right):.1%})")
    console.print(look(model, "271828459"))
    console.print(
        "[dim]A line is a digit it says, a column one it read: brighter is more attention.[/]"
    )


if __name__ == "__main__":
    main()
