"""`translate`: sequences to sequences. Sentences to sentences, dates to dates, words to sounds.

An encoder-decoder (Vaswani et al., 2017), taught to say each next token given the true ones before
it; afterwards it writes by search. Encoders and decoders of other kinds mix with it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config import (
    ModelConfig,
    StackConfig,
    TokenizerConfig,
    choose,
    require,
    share,
    stack_of_size,
)
from glassformer.config.decoding import DecodeConfig
from glassformer.config.run import Config
from glassformer.config.values import Values, plain
from glassformer.data.batches import ordered_batches, row_dice
from glassformer.data.doctor import Check
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Samples
from glassformer.data.text.bpe_dropout import BpeDropout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.metrics.paired import Comparison
from glassformer.metrics.score import Score
from glassformer.models.build import build_transformer
from glassformer.models.transformer import Noise, Transformer
from glassformer.tasks.base import Loss
from glassformer.tasks.job import Job, Prediction
from glassformer.tasks.pair_batch import Meant, PairBatch, pair_batch
from glassformer.tasks.pair_tokens import LOOKED_AT, PairTokens, learn_pair_tokens
from glassformer.tasks.text import Row, growing, hidden_at_random, text_batch, token_rows
from glassformer.tasks.translations import GOALS, MEASURES, Translations, measure_for
from glassformer.tasks.writing import Writer, as_prediction

MEASURE_NAMES = ("auto", *MEASURES)
TOGETHER = 256  # texts translated at a time


@dataclass(frozen=True, kw_only=True, slots=True)
class TranslateConfig:
    """Settings of the job.

    Args:
        max_length: Tokens of a side that are read or written; longer texts are cut.
        joint: Whether both sides share a vocabulary; None decides by how they are written.
        target: How the target falls into tokens, where it does not share the source's.
        measure: Whether targets are sentences (text) or words spelt in symbols.
        decode: How it writes when it is asked, and when the trained model is scored.
    """

    max_length: int = 256
    label_smoothing: float = 0.1
    joint: bool | None = None
    target: TokenizerConfig = field(default_factory=TokenizerConfig)
    measure: str = "auto"
    decode: DecodeConfig = field(default_factory=lambda: DecodeConfig(method="beam"))

    def __post_init__(self) -> None:
        require(self.max_length > 1, "task.max_length must be at least 2: a token and an end")
        share("task.label_smoothing", self.label_smoothing)
        choose("task.measure", self.measure, MEASURE_NAMES)


class Translate(Job[PairBatch, Tensor, Translations]):
    """Pairs of texts."""

    name = "translate"
    settings = TranslateConfig
    roles = ("source", "target", "references?", "to?")
    usual_epochs = 20.0

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.task = config, folder, config.task
        self.pair = PairTokens.load(folder)
        self.goal = GOALS.get(self.task.measure, "bleu")  # type: ignore[misc]
        self.samples = None
        if data is not None:
            self.samples = Samples.open(data)
            self.sources, self.targets = (Ragged.open(data / side) for side in ("source", "target"))
        self.dropouts = [
            BpeDropout(tokens) if settings.dropout else None
            for tokens, settings in (
                (self.pair.source, config.data.tokenizer),
                (self.pair.target, self.task.target),
            )
        ]

    @staticmethod
    def defaults(accelerated: bool) -> Values:
        size = "base" if accelerated else "tiny"
        stack = plain(stack_of_size(size, max_length=512, dropout=0.1))
        return {
            "model": {"encoder": stack, "decoder": stack},
            "data": {
                "batch_tokens": 16384 if accelerated else 4096,
                "valid_share": 0.05,
                "test_share": 0.05,
                "tokenizer": {"vocabulary": 8000},
            },
            "task": {"target": {"vocabulary": 8000}},
            "train": {"optimiser": {"schedule": "inverse-root"}, "average": 5},
        }

    @classmethod
    def checks(cls, config: Config) -> list[Check]:
        return super().checks(config)

    @classmethod
    def learn(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        task = config.task
        if origin is None:
            tokens, sides = learn_pair_tokens(
                config.data.tokenizer, task.target, task.joint, samples
            )
            data = replace(config.data, tokenizer=sides.source)
            task = replace(task, target=sides.target, joint=sides.joint)
        else:
            tokens, data = PairTokens.load(origin), config.data
            task = replace(task, joint=tokens.joint)
        tokens.save(folder)
        if task.measure == "auto":
            looked_at = [row["target"] for row in islice(samples.of("train"), LOOKED_AT)]
            task = replace(task, measure=measure_for(looked_at))
        model = reaching_both(replace(config.model, share=tokens.joint), task.max_length + 1)
        return replace(config, model=model, data=data, task=task)

    def index(self, samples: Samples, data: Path) -> None:
        for side, tokens in (("source", self.pair.source), ("target", self.pair.target)):
            Ragged.write(data / side, token_rows(tokens, samples, side), np.int32)

    def model(self) -> Transformer:
        return build_transformer(
            self.config.model,
            vocabulary=self.pair.target_size,
            source=None if self.config.model.share else self.pair.source_size,
        )

    def lengths(self, part: str) -> Int[np.ndarray, " rows"]:
        assert self.samples is not None
        rows, longest = self.samples.rows(part), self.task.max_length
        return sum(
            np.minimum(side.lengths[rows], longest) + 1 for side in (self.sources, self.targets)
        )

    @property
    def padded(self) -> bool:
        return self.config.data.form == "padded"

    def batch(self, part: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> PairBatch:
        assert self.samples is not None
        numbers = self.samples.rows(part)[rows].tolist()
        sources, targets = zip(*(self._pair(number, epoch) for number in numbers), strict=True)
        meant = tuple(map(self._meant, numbers)) if epoch is None else ()
        return self.as_batch(list(sources), list(targets), rows, meant)

    def _meant(self, number: int) -> tuple[str, ...]:
        """The right answers of a sample."""
        assert self.samples is not None
        sample = self.samples[number]
        return tuple(sample.get("references") or (sample["target"],))

    def _pair(self, number: int, epoch: int | None) -> tuple[Row, Row]:
        """What is read and what is to be written, with what training adds to it."""
        assert self.samples is not None
        sides = [self.sources[number], self.targets[number]]
        sample = self.samples[number] if self.pair.tags or any(self.dropouts) else {}
        if epoch is not None:
            dice = row_dice(self.config.seed, epoch, number)
            shares = self.config.data.tokenizer.dropout, self.task.target.dropout
            for side, (name, dropout) in enumerate(
                zip(("source", "target"), self.dropouts, strict=True)
            ):
                if dropout is not None:
                    sides[side] = dropout.encode(sample[name], shares[side], dice)
            if hidden := self.config.data.token_dropout:
                sides[0] = hidden_at_random(sides[0], hidden, Tokenizer.mask, dice)
        tag = self.pair.tag(sample["to"], sample["where"]) if self.pair.tags else None
        source, target = (side[: self.task.max_length] for side in sides)
        return self.pair.read(source, tag), target

    def as_batch(
        self, sources: list[Row], targets: list[Row], owners: Row, meant: Meant = ()
    ) -> PairBatch:
        """Rows of tokens as a batch."""
        ends = {"start": Tokenizer.start, "end": Tokenizer.end}
        return pair_batch(sources, targets, owners, meant, packed=not self.padded, **ends)

    def forward(
        self, model: nn.Module, batch: PairBatch, *, noise: Noise | None = None
    ) -> Float[Tensor, "next V"]:
        said = model(batch.source, batch.told, source=batch.reads, target=batch.writes, noise=noise)
        return (said if batch.writes.is_packed else said[batch.writes.real]).float()

    def loss(self, output: Float[Tensor, "next V"], batch: PairBatch) -> Loss:
        total = F.cross_entropy(
            output, batch.truth, reduction="sum", label_smoothing=self.task.label_smoothing
        )
        return Loss(total, total.new_full((), len(output)))

    def divergence(
        self, a: Float[Tensor, "next V"], b: Float[Tensor, "next V"], batch: PairBatch
    ) -> Loss:
        log_a, log_b = a.log_softmax(-1), b.log_softmax(-1)
        total = (log_a.exp() * (log_a - log_b)).sum()
        return Loss(total, total.new_full((), len(a)))

    def answers(self, model: nn.Module, batches: Iterable[PairBatch]) -> Translations:
        return self._answers(model, batches, self.task.decode)

    def score(self, model: nn.Module, batches: Iterable[PairBatch]) -> dict[str, float]:
        """Scores of what it writes without search, which is quicker, and of what it was told."""
        greedy = replace(self.task.decode, method="greedy", best=1)
        return self._answers(model, batches, greedy).values()

    def _answers(
        self, model: nn.Module, batches: Iterable[PairBatch], decode: DecodeConfig
    ) -> Translations:
        writer, found = Writer(self.pair, decode, self.task.max_length), []
        for batch in batches:
            written = writer.write(model, batch.source, batch.reads)
            losses = F.cross_entropy(self.forward(model, batch), batch.truth, reduction="none")
            counts = batch.writes.lengths
            row = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
            surprise = losses.new_zeros(len(counts)).index_add(0, row, losses)
            texts = [best[0].text for best in written]
            numbers = (batch.owners.tolist(), surprise.tolist(), counts.tolist())
            found += zip(numbers[0], texts, batch.meant, *numbers[1:], strict=True)
        _, said, meant, surprises, tokens = zip(*sorted(found), strict=True)
        return Translations(
            list(said), list(meant), np.array(surprises), np.array(tokens, float), self.task.measure
        )

    @property
    def answers_in(self) -> tuple[str, ...]:
        return (self.task.measure,)

    def scores(self, answers: Translations) -> dict[str, Score]:
        return answers.scores()

    def compare(self, first: Translations, second: Translations) -> dict[str, Comparison]:
        return first.compared_with(second)

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Translations in order; inside, texts of about one length are written together."""
        writer = Writer(self.pair, self.task.decode, self.task.max_length)
        for texts in growing(inputs, TOGETHER):
            found: dict[int, Prediction] = {}
            sources = self._sources(texts)
            lengths = np.array([len(row) for row in sources])
            for rows in ordered_batches(lengths, self.config.data.batch_tokens, padded=True):
                some = [sources[row] for row in rows.tolist()]
                ids, layout = text_batch(some, packed=False)
                with torch.no_grad():  # not around what the caller does between two answers
                    written = writer.write(
                        model, ids.to(device_of(model)), layout.to(device_of(model))
                    )
                found |= zip(rows.tolist(), map(as_prediction, written), strict=True)
            yield from (found[row] for row in range(len(texts)))

    def _sources(self, texts: list[str]) -> list[Row]:
        """What is read of new texts."""
        bare, tags = zip(*map(self.pair.tagged, texts), strict=True)
        rows = self.pair.source.encode(list(bare))
        longest = self.task.max_length
        return [self.pair.read(ids[:longest], tag) for ids, tag in zip(rows, tags, strict=True)]


def device_of(model: nn.Module) -> torch.device:
    """Where a model is."""
    return next(model.parameters()).device


def reaching_both(model: ModelConfig, longest: int) -> ModelConfig:
    """The model with positions for so many tokens on both sides."""

    def reach(stack: StackConfig | None) -> StackConfig | None:
        if stack is None or stack.max_length >= longest:
            return stack
        return replace(stack, max_length=longest)

    return replace(model, encoder=reach(model.encoder), decoder=reach(model.decoder))
