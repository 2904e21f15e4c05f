"""Small jobs beside the real ones: what the engine does for one, it must do for any.

    Copy     an encoder-decoder that writes what it reads, from a text file to an answer
    Ctc      an encoder over noisy frames, scored by CTC
    First    an encoder with one answer a row: its first symbol

Each can be learned within seconds. `train_on` and the makers below are what tests share.
"""

from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from symbol_rows import Pairs, apart, hide, padded, some_rows, told
from torch import Tensor, nn

from glassformer import processes
from glassformer.config import DataConfig, ModelConfig, StackConfig, TrainConfig, stack_of_size
from glassformer.config.run import Config
from glassformer.core.layout import Layout
from glassformer.data.batches import row_rng
from glassformer.data.ragged import Ragged
from glassformer.data.samples import SPLITS, Samples
from glassformer.errors import GlassformerError
from glassformer.models.build import build_classifier, build_encoder, build_transformer
from glassformer.models.transformer import embedded
from glassformer.tasks.job import JobTask
from glassformer.tasks.task import Loss, Task
from glassformer.training.loop import train
from glassformer.training.machine import Machine
from glassformer.training.setup import TrainSetup
from glassformer.training.state import State

CPU = Machine(torch.device("cpu"), torch.float32, False)
BLANK = 0  # of CTC


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyConfig:
    """Settings of Copy: the longest text it writes."""

    max_length: int = 11


class Copy(JobTask[Pairs, Tensor, np.ndarray]):
    """Writes the characters that it reads."""

    name, goal = "copy", "exact"

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.samples = config, None
        self.alphabet = (folder / "alphabet.txt").read_text(encoding="utf-8")
        self.start, self.end, self.hidden = range(len(self.alphabet), len(self.alphabet) + 3)
        if data is not None:
            self.samples, self.tokens = Samples.open(data), Ragged.open(data / "tokens")

    @classmethod
    def prepare(cls, config, samples, folder, origin):
        found = sorted({character for text in samples.texts("train") for character in text})
        (folder / "alphabet.txt").write_text("".join(found), encoding="utf-8")
        return config

    def index(self, samples, data):
        rows = (np.array(self.read(sample["text"])) for sample in samples)
        Ragged.write(data / "tokens", rows)

    def read(self, text):
        if not 0 < len(text) <= self.config.task.max_length:
            raise GlassformerError(f"{text!r} has {len(text)} characters; shorten it")
        places = (self.alphabet.find(character) for character in text)
        return [self.hidden if place < 0 else place for place in places]

    def model(self):
        return build_transformer(self.config.model, vocabulary=len(self.alphabet) + 3)

    def lengths(self, split):
        return self.tokens.lengths[self.samples.rows(split)] + 1  # with the end

    def batch(self, split, rows, epoch):
        texts = [self.tokens[number] for number in self.samples.rows(split)[rows].tolist()]
        share, seen = self.config.data.token_dropout, texts
        if epoch is not None and share:
            dice = [row_rng(self.config.seed, epoch, row) for row in rows.tolist()]
            seen = [
                hide(text, share, self.hidden, own) for text, own in zip(texts, dice, strict=True)
            ]
        return self.pairs(seen, texts, rows)

    def pairs(self, seen, texts, rows):
        whole = [np.array([self.start, *text, self.end]) for text in texts]
        target, _ = padded(whole)
        writes = Layout.padded([len(text) + 1 for text in texts])
        return Pairs(*padded(seen), target, writes, torch.from_numpy(rows))

    def forward(self, model, batch, *, noise=None):
        told = batch.target[:, :-1]  # teacher forcing
        return model(batch.source, told, source=batch.reads, target=batch.writes, noise=noise)

    def loss(self, output, batch):
        real = batch.writes.real
        total = F.cross_entropy(output[real], batch.target[:, 1:][real], reduction="sum")
        return Loss(total, real.sum().float())

    def divergence(self, a, b, batch):
        return apart(a, b, batch.writes)

    def answers(self, model, batches):
        right = {}
        for batch in batches:
            wanted = [row[1 : 1 + n].tolist() for row, n in told(batch.target, batch.writes)]
            for owner, (written, _), text in zip(
                batch.row_ids.tolist(), self.write(model, batch), wanted, strict=True
            ):
                right[owner] = [*written, self.end] == text
        right = dict(processes.gathered_rows(list(right.items())))
        return np.array([right[row] for row in sorted(right)])

    def write(self, model, batch) -> list[tuple[list[int], float]]:
        """The likeliest next character, again and again; with how sure the model was of all."""
        rows = len(batch.source)
        said, sure = torch.full((rows, 1), self.start), torch.zeros(rows)
        for length in range(1, self.config.task.max_length + 2):
            so_far = Layout.full(rows, length)
            scores = model(batch.source, said, source=batch.reads, target=so_far)[:, -1]
            best = scores.log_softmax(-1).max(-1)
            sure += best.values.masked_fill((said == self.end).any(1), 0.0)
            said = torch.cat([said, best.indices[:, None]], dim=1)
            if (said == self.end).any(1).all():
                break
        lines = [[*row, self.end] for row in said[:, 1:].tolist()]
        texts = [line[: line.index(self.end)] for line in lines]
        return list(zip(texts, sure.exp().tolist(), strict=True))

    def score(self, model, batches):
        return {"exact": float(self.answers(model, batches).mean())}


class InMemory(Task[Pairs, Tensor]):
    """What the two jobs below share: rows of symbols by part, and settings."""

    def __init__(self, parts: dict[str, list[list[int]]], config: Config) -> None:
        self.parts, self.config = {split: parts.get(split, []) for split in SPLITS}, config

    def lengths(self, split):
        return np.array([self.length(row) for row in self.parts[split]], dtype=np.int64)

    def length(self, row):
        return len(row)


class Ctc(InMemory):
    """Names the symbols heard: two frames each, then silence, with noise while it learns."""

    name, goal, higher_is_better = "ctc", "errors", False
    symbols = 5

    def model(self):
        return Hearing(self.config.model.encoder, self.symbols + 1)

    def length(self, row):
        return 3 * len(row)

    def batch(self, split, rows, epoch):
        texts = [self.parts[split][row] for row in rows.tolist()]
        frames = [self.frames(text) for text in texts]
        if epoch is not None:
            for row, sound in zip(rows.tolist(), frames, strict=True):
                sound += 0.1 * row_rng(self.config.seed, epoch, row).standard_normal(sound.shape)
        for text, sound in zip(texts, frames, strict=True):
            self.check(text, len(sound))
        source = np.zeros((len(frames), max(map(len, frames)), self.symbols + 1), np.float32)
        for filled, sound in zip(source, frames, strict=True):
            filled[: len(sound)] = sound
        target, writes = padded(texts)
        reads = Layout.padded([len(sound) for sound in frames])
        return Pairs(torch.from_numpy(source), reads, target, writes, torch.from_numpy(rows))

    def frames(self, text):
        return np.eye(self.symbols + 1)[[frame for symbol in text for frame in (symbol, symbol, 0)]]

    @staticmethod
    def check(text, frames):
        """CTC wants a frame for each symbol and one between equal ones, or it is infinite."""
        needed = len(text) + sum(a == b for a, b in pairwise(text))
        if frames < needed:
            raise GlassformerError(f"{text} has {frames} frames and needs {needed}; speak slower")

    def forward(self, model, batch, *, noise=None):
        return model(batch.source, layout=batch.reads, noise=noise)

    def loss(self, output, batch):
        lengths = batch.reads.lengths, batch.writes.lengths
        logs = output.log_softmax(-1).transpose(0, 1)  # (T, B, V), as PyTorch wants it
        total = F.ctc_loss(logs, batch.target, *lengths, blank=BLANK, reduction="sum")
        return Loss(total, lengths[1].sum().float())

    def divergence(self, a, b, batch):
        return replace(apart(a, b, batch.reads), count=batch.writes.lengths.sum().float())

    def score(self, model, batches):
        wrong = []
        for batch in batches:
            wanted = [row[:n].tolist() for row, n in told(batch.target, batch.writes)]
            heard = self.forward(model, batch).argmax(-1)
            for (row, length), text in zip(told(heard, batch.reads), wanted, strict=True):
                merged = [symbol for symbol, _ in groupby(row[:length].tolist())]
                wrong.append([symbol for symbol in merged if symbol != BLANK] != text)
        return {"errors": float(np.mean(processes.gathered_rows(wrong)))}


class Hearing(nn.Module):
    """Frames to scores of symbols, a frame each."""

    def __init__(self, config: StackConfig, symbols: int) -> None:
        super().__init__()
        self.frontend = Ears(symbols, config.dim)
        self.encoder = build_encoder(config)
        self.to_symbol = nn.Linear(config.dim, symbols)

    def forward(self, frames, *, layout, noise=None):
        x, layout = embedded(self.frontend, frames, layout, noise)
        return self.to_symbol(self.encoder(x, layout=layout))


class Ears(nn.Module):
    """A frontend of one's own."""

    def __init__(self, bins: int, dim: int) -> None:
        super().__init__()
        self.dim, self.to_vector = dim, nn.Linear(bins, dim)

    def forward(self, frames, layout):
        return self.to_vector(frames), layout


class First(InMemory):
    """Says which symbol a row begins with."""

    name, goal = "first", "accuracy"
    symbols = 7

    def model(self):
        return build_classifier(self.config.model, classes=self.symbols, source=self.symbols + 1)

    def batch(self, split, rows, epoch):
        texts = [np.array(self.parts[split][row]) for row in rows.tolist()]
        share, target = self.config.data.token_dropout, torch.tensor([[text[0]] for text in texts])
        if epoch is not None and share:
            dice = [row_rng(self.config.seed, epoch, row) for row in rows.tolist()]
            texts = [
                hide(text, share, self.symbols, own) for text, own in zip(texts, dice, strict=True)
            ]
        writes = Layout.full(len(texts), 1)
        return Pairs(*padded(texts), target, writes, torch.from_numpy(rows))

    def forward(self, model, batch, *, noise=None):
        return model(batch.source, layout=batch.reads, noise=noise)

    def loss(self, output, batch):
        total = F.cross_entropy(output, batch.target[:, 0], reduction="sum")
        return Loss(total, torch.tensor(float(len(output))))

    def divergence(self, a, b, batch):
        return apart(a[:, None], b[:, None], batch.writes)

    def score(self, model, batches):
        right = [self.forward(model, batch).argmax(-1) == batch.target[:, 0] for batch in batches]
        return {"accuracy": float(processes.gathered(torch.cat(right).float()).mean())}


def settings(name="first", *, dropout=0.0, share=False, seed=0, **data) -> Config:
    """A configuration of a tiny model."""
    stack = stack_of_size("tiny", dim=32, depth=1, dropout=dropout, max_length=64)
    model = ModelConfig(encoder=stack, decoder=stack, share=share, scale=True)
    data = DataConfig(**{"batch_tokens": 40} | data)
    return Config(job=name, task=CopyConfig(), model=model, data=data, seed=seed)


def make_copy(folder: Path, parts: dict[str, list[str]], **asked) -> Copy:
    """A Copy over texts, in a folder of its own."""
    data, config = folder / "data", settings("copy", **asked)
    data.mkdir(parents=True)
    rows = ((split, {"text": text}) for split, texts in parts.items() for text in texts)
    samples = Samples.write(data, rows)
    config = Copy.prepare(config, samples, folder, None)
    Copy(config, folder, None).index(samples, data)
    return Copy(config, folder, data)


def make(name: str, folder: Path, **asked) -> Task:
    """One of the jobs over a few rows; what it is tried on is what it learns."""
    if name == "copy":
        texts = ["".join(map(str, row)) for row in some_rows(13, 10)]
        return make_copy(folder, {"train": texts, "valid": texts[:5]}, **asked)
    kind = {"ctc": Ctc, "first": First}[name]
    rows = some_rows(13, kind.symbols, first=int(name == "ctc"))
    return kind({"train": rows, "valid": rows[:5]}, settings(name, **asked))


NAMES = ("copy", "ctc", "first")


def setup_for(task: Task, checkpoints: Path | None = None, *, seed: int = 0, **asked) -> TrainSetup:
    """A setup of so many steps."""
    return TrainSetup(TrainConfig(**asked), task.config.data, CPU, seed, checkpoints)


def fresh(task: Task, setup: TrainSetup) -> State:
    """A model before its first step."""
    torch.manual_seed(setup.seed)
    return State(task.model(), setup.train)


def train_on(task: Task, setup: TrainSetup, state: State | None = None):
    """Train to the end; the state and all that was told."""
    state = state or fresh(task, setup)
    return state, list(train(state, task, setup))
