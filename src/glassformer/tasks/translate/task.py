"""`translate`: sequences to sequences. Sentences to sentences, dates to dates, words to sounds.

An encoder-decoder (Vaswani et al., 2017), taught to say each next token given the true ones before
it; afterwards it writes by search. Encoders and decoders of other kinds mix with it.
"""

from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer import processes
from glassformer.config import require
from glassformer.config.own_code import is_own
from glassformer.config.run import Config
from glassformer.data.arrays import map_numbers
from glassformer.data.batches import row_noise, row_rng
from glassformer.data.jagged import Jagged
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Samples
from glassformer.data.text.bpe_dropout import BpeDropout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.metrics.styles import style_of
from glassformer.models.build import build_transformer
from glassformer.models.transformer import Noise, Transformer
from glassformer.tasks.job import JobTask
from glassformer.tasks.shared.losses import smoothing_note, token_divergence, token_loss
from glassformer.tasks.shared.own_models import given
from glassformer.tasks.shared.reliability import FEWEST, Reliability
from glassformer.tasks.shared.sequences import SequenceStore, reading_sequences, sequence_of
from glassformer.tasks.shared.text import (
    as_settled,
    attends,
    hidden_at_random,
    reaching,
    token_rows,
    trained,
)
from glassformer.tasks.task import Loss
from glassformer.tasks.translate.answers import (
    GOALS,
    PERFECT,
    Translations,
    goal_of,
    measure_for,
)
from glassformer.tasks.translate.batch import (
    PairBatch,
    pair_batch,
    right_answers,
    written_batch,
)
from glassformer.tasks.translate.tokens import (
    LOOKED_AT,
    PairTokens,
    learn_pair_tokens,
    settle_sides,
    settled,
    take_pair_tokens,
)
from glassformer.tasks.translate.writing import Writer

TAG_OF_EACH = "tags.npy"  # the tag of every sample, where there are several target languages


class TranslateTask(JobTask[PairBatch, Tensor, Translations]):
    """Pairs of texts."""

    name = "translate"
    default_epochs = 20.0
    fewest_answers = FEWEST
    scoring_work = 6.0  # an answer is written token by token
    timing = False  # whether answers are as long as the right ones, whatever the model says

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        self.pair = PairTokens.load(folder)
        goal, usual = self.settings.goal, GOALS[self.settings.measure][0]
        self.goal = usual if goal == "auto" else goal  # runs of earlier versions do not say
        self.perfect = PERFECT[self.goal]
        self.higher_is_better = style_of(self.goal).higher_is_better
        self.writer = Writer(self.pair, self.settings.decode, self.settings.max_length)
        self.reliability = Reliability.load(folder)
        self.samples = None
        if data is not None:
            self.samples = Samples.open(data)
            self.sources = self._open_sources(data)
            self.targets = Ragged.open(data / "target", below=self.pair.target.size)
            self.tags = None
            if self.pair.tags:
                shape = (len(self.samples),)
                self.tags = map_numbers(data / TAG_OF_EACH, shape, below=self.pair.source_size)
        shares = config.data.tokenizer.dropout, self.settings.target.dropout
        tokens = self.pair.source, self.pair.target
        self.dropouts = {
            side: (BpeDropout(some), share)
            for side, some, share in zip(("source", "target"), tokens, shares, strict=True)
            if share
        }

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        task, reads = config.task, config.data.tokenizer
        own = is_own(config.model.frontend.kind)
        if own:
            require(origin is None, "a frontend of your own starts from no other run; drop --from")
            writes = settled(task.target or reads, [row["target"] for row in samples.of("train")])
            target = trained(writes, samples.values("target", "train"))
            tokens = PairTokens(target, target)  # nothing is read with it
        elif origin is None:
            sides = settle_sides(reads, task.target, task.joint, samples)
            reads, writes, tokens = sides.source, sides.target, learn_pair_tokens(sides, samples)
        else:
            tokens = take_pair_tokens(origin, reads, task.target, task.joint, samples)
            writes = task.target or replace(reads, kind="auto", dropout=0.0)
        tokens.save(folder)
        task = replace(task, target=as_settled(writes, tokens.target), joint=tokens.joint)
        if task.measure == "auto":
            looked_at = [row["target"] for row in islice(samples.of("train"), LOOKED_AT)]
            task = replace(task, measure=measure_for(looked_at))
        task = replace(task, goal=goal_of(task.measure, task.goal))
        model = replace(config.model, share=config.model.share and tokens.joint)
        return replace(
            config,
            model=reading_sequences(model, samples, task.max_length + 2)
            if own
            else reaching(model, task.max_length + 2),  # with a tag and an end
            data=replace(config.data, tokenizer=as_settled(reads, tokens.source)),
            task=task,
        )

    def index(self, samples: Samples, data: Path) -> None:
        if self.pair.tags:  # a row without one is refused before anything is learned
            tags = [self.pair.tag(sample.get("to", ""), sample["where"]) for sample in samples]
            np.save(data / TAG_OF_EACH, np.array(tags), allow_pickle=False)
        sides = {"source": self.pair.source, "target": self.pair.target}
        if self.reads_sequences:
            del sides["source"]
            channels = self.config.model.frontend.channels
            SequenceStore.write(data, (sequence_of(one, "source", channels) for one in samples))
        for side, tokens in sides.items():
            Ragged.write(data / side, token_rows(tokens, samples, side), np.int32)

    @property
    def reads_sequences(self) -> bool:
        """Whether it reads sequences of numbers, through a frontend of one's own."""
        return is_own(self.config.model.frontend.kind)

    def _open_sources(self, data: Path) -> Ragged | SequenceStore:
        if self.reads_sequences:
            return SequenceStore(data, self.config.model.frontend.channels)
        return Ragged.open(data / "source", below=self.pair.source.size)

    def model(self) -> Transformer:
        return build_transformer(
            self.config.model,
            vocabulary=self.pair.target_size,
            source=None if self.config.model.share else self.pair.source_size,
        )

    @property
    def reader(self) -> Tokenizer:
        return self.pair.source

    @property
    def vocabulary(self) -> int:
        return self.pair.source_size

    @property
    def target_vocabulary(self) -> int:
        """The number of tokens that it writes."""
        return self.pair.target_size

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        assert self.samples is not None
        rows, longest = self.samples.rows(split), self.settings.max_length
        reads, writes = (
            np.minimum(side.lengths[rows], longest) + 1 for side in (self.sources, self.targets)
        )
        if self.reads_sequences:
            reads = self.sources.lengths[rows]
        return reads + writes + bool(self.pair.tags)

    @property
    def padded(self) -> bool:
        return self.config.data.form == "padded" or self.reads_sequences

    @property
    def mixes_lengths(self) -> bool:
        return not self.padded and attends(self.config.model)

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> PairBatch:
        assert self.samples is not None
        numbers = self.samples.rows(split)[rows]
        longest = self.settings.max_length
        references = tuple(map(self.right_answers, numbers.tolist() if epoch is None else ()))
        targets = self.targets.take(numbers, longest)
        if isinstance(self.sources, SequenceStore):
            read = self.sources.padded(numbers)
            return written_batch(*read, targets, rows, references, packed=False)
        sources = self.sources.take(numbers, longest)
        if epoch is not None:
            sources, targets = self._with_noise(numbers, epoch, sources, targets)
        sources = self.pair.read(sources, None if self.tags is None else self.tags[numbers])
        return pair_batch(sources, targets, rows, references, packed=not self.padded)

    def right_answers(self, number: int) -> tuple[str, ...]:
        """The references of a sample, in what can be written."""
        assert self.samples is not None
        in_simplified = self.pair.target.simplified
        return right_answers(self.samples[number], in_simplified=in_simplified)

    def _with_noise(
        self, numbers: Int[np.ndarray, " chosen"], epoch: int, sources: Jagged, targets: Jagged
    ) -> tuple[Jagged, Jagged]:
        """Sources and targets with what training adds to them."""
        assert self.samples is not None
        seed, hidden = self.config.seed, self.config.data.token_dropout
        sides = {"source": sources, "target": targets}
        rngs = [row_rng(seed, epoch, row) for row in numbers.tolist()] if self.dropouts else []
        for side, (dropout, share) in self.dropouts.items():
            texts = (self.samples[row][side] for row in numbers.tolist())
            broken = map(dropout.encode, texts, repeat(share), rngs)
            sides[side] = Jagged.of([row[: self.settings.max_length] for row in broken])
        if hidden:
            noise = row_noise(seed, epoch, numbers, sides["source"].lengths)
            sides["source"] = hidden_at_random(sides["source"], hidden, Tokenizer.mask, noise)
        return sides["source"], sides["target"]

    def forward(
        self, model: nn.Module, batch: PairBatch, *, noise: Noise | None = None
    ) -> Float[Tensor, "next V"]:
        """Scores of every next token of the targets, without padding."""
        target = batch.target_layout
        logits = model(
            batch.source,
            batch.decoder_input,
            source=batch.source_layout,
            target=target,
            **given(noise=noise),
        )
        return logits if target.is_packed else logits[target.real]

    @property
    def objective_note(self) -> str | None:
        return smoothing_note(self.settings.label_smoothing)

    def loss(self, output: Float[Tensor, "next V"], batch: PairBatch) -> Loss:
        return token_loss(output, batch.labels, smoothing=self.settings.label_smoothing)

    def divergence(
        self, a: Float[Tensor, "next V"], b: Float[Tensor, "next V"], batch: PairBatch
    ) -> Loss:
        return token_divergence(a, b, batch.labels)

    def answers(self, model: nn.Module, batches: Iterable[PairBatch]) -> Translations:
        """What it writes for the rows of these batches, in the order of the rows."""
        return self._answers(model, batches, self.writer)

    def score(self, model: nn.Module, batches: Iterable[PairBatch]) -> dict[str, float]:
        """Scores of greedy decoding, which is quicker than search, and of teacher forcing."""
        goal_of(self.settings.measure, self.goal)  # refused if it cannot be computed here
        greedy = replace(self.settings.decode, method="greedy", best=1)
        return self._answers(model, batches, replace(self.writer, decode=greedy)).values()

    def _answers(
        self, model: nn.Module, batches: Iterable[PairBatch], writer: Writer
    ) -> Translations:
        found: list[tuple[int, str, float, tuple[str, ...], float, int]] = []
        for batch in batches:
            limits = batch.target_layout.lengths.tolist() if self.timing else None
            written = writer.write(model, batch.source, batch.source_layout, limits)
            scores = self.forward(model, batch).float()
            losses = F.cross_entropy(scores, batch.labels, reduction="none")
            counts = batch.target_layout.lengths
            row = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
            nll = losses.new_zeros(len(counts)).index_add(0, row, losses)
            texts = [best[0].text for best in written]
            chances = [best[0].log_probability for best in written]
            numbers = (batch.row_ids.tolist(), nll.tolist(), counts.tolist())
            found += zip(numbers[0], texts, chances, batch.references, *numbers[1:], strict=True)
        found = processes.gathered_rows(found)
        if not found:
            raise GlassformerError("there are no rows to translate; give at least one")
        rows, answers, likely, references, losses_of, tokens = zip(*sorted(found), strict=True)
        sums, measure = (np.array(losses_of), np.array(tokens, float)), self.settings.measure
        return Translations(
            list(answers), list(references), measure, *sums, chances=likely, rows=np.array(rows)
        )

    def calibrate(self, answers: Translations) -> None:
        written = answers.hypotheses, answers.references, answers.chances
        self.reliability = Reliability.learn(self.folder, *written)

    def for_timing(self) -> "TranslateTask":
        other = copy(self)
        other.timing = True
        return other
