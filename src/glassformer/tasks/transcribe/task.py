"""`transcribe`: recordings of speech to text, by CTC, by an attention decoder, or by both.

Recordings are read once, when the data are indexed; their features or waveforms are mapped from a
file afterwards.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import nn

from glassformer import processes
from glassformer.config.run import Config
from glassformer.core.layout import pack
from glassformer.data.audio.extractor import Extractor, Features
from glassformer.data.audio.reading import Sound
from glassformer.data.batches import row_rng
from glassformer.data.ragged import Ragged
from glassformer.data.samples import NO_SPLIT, SPLITS, Sample, Samples
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode.ctc import frames_needed
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.models.build import build_transcriber
from glassformer.models.transcriber import Scored, Transcriber
from glassformer.models.transformer import Noise
from glassformer.tasks.job import JobTask
from glassformer.tasks.shared.own_models import given, is_a
from glassformer.tasks.shared.reliability import FEWEST, Reliability
from glassformer.tasks.shared.sound import (
    FRAMES_A_SECOND,
    extractor_of,
    is_long,
    read_short,
    settle_sound,
    vectors_of,
)
from glassformer.tasks.shared.sound_store import SoundStore
from glassformer.tasks.shared.text import as_settled
from glassformer.tasks.task import Loss
from glassformer.tasks.transcribe.answers import GOALS, Transcripts, refuse_unscorable
from glassformer.tasks.transcribe.choices import Choices, Written
from glassformer.tasks.transcribe.hearing import drawn_mask, hearing, whole_mask
from glassformer.tasks.transcribe.language_model import (
    TRIED,
    learn_language_model,
    open_fusion,
    share_of,
    trials,
)
from glassformer.tasks.transcribe.listened import refuse_chunks, scored_by
from glassformer.tasks.transcribe.losses import (
    MeanLoss,
    expect_blanks,
    joint_divergence,
    joint_loss,
)
from glassformer.tasks.transcribe.pieces import longest_piece
from glassformer.tasks.transcribe.searching import Searcher
from glassformer.tasks.transcribe.sounds import SoundBatch, sound_batch
from glassformer.tasks.transcribe.transcripts import Normaliser, learn_tokens, measure_for
from glassformer.wording import counted

REMARKS = "remarks.json"


class TranscribeTask(JobTask[SoundBatch, Scored, Transcripts]):
    """Recordings and their transcripts."""

    name = "transcribe"
    higher_is_better = False
    perfect = 0.0
    default_epochs = 30.0
    fewest_answers = FEWEST
    scoring_work = 2.0  # texts are searched
    timing = False  # whether answers are as long as the right ones, whatever the model says

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        self.tokenizer = Tokenizer.load(folder / "tokenizer.json")
        self.goal = GOALS[self.settings.measure]
        self.normalise = Normaliser(self.settings.lowercase, self.settings.punctuation)
        frontend = config.model.frontend
        self.bins, self.factor = frontend.bins, frontend.factor
        self.mask = whole_mask(self.settings.stream, self.factor)
        self.searcher = Searcher(
            tokenizer=self.tokenizer,
            search=self.settings.search,
            decode=self.settings.decode,
            weight=share_of(folder, self.settings),
            factor=self.factor,
            fusion=open_fusion(folder, self.settings),
        )
        self.reliability = Reliability.load(folder)
        self.samples = None
        if data is not None:
            self.samples = Samples.open(data)
            self.sounds = SoundStore(data, self.extract, self.settings)
            self.texts = Ragged.open(data / "tokens", below=self.tokenizer.size)
            self.remarks: list[str] = read_json(data / REMARKS)

    @cached_property
    def extract(self) -> Extractor:
        """From samples to features."""
        return extractor_of(self.settings, self.bins, self.folder)

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        refuse_unscorable()
        task, reads = config.task, config.data.tokenizer
        normalise = Normaliser(task.lowercase, task.punctuation)
        tokens = learn_tokens(reads, samples, normalise, origin)
        tokens.save(folder / "tokenizer.json")
        if task.lm is None and not len(samples.rows("valid")):
            task = replace(task, lm=0.0)  # nothing to choose a weight by
        if task.lm != 0 and task.decode.method == "beam":
            learn_language_model(tokens, map(normalise, samples.values("text", "train")), folder)
        if task.measure == "auto":
            measure = measure_for(map(normalise, samples.values("text", "train")))
            task = replace(task, measure=measure)
        if task.search == "auto":
            task = replace(task, search=task.searches[0])
        task = settle_sound(task, config.model.frontend.bins, samples, folder, origin)
        if not task.max_piece:
            task = replace(task, max_piece=longest_piece(samples, task.max_seconds))
        return replace(
            config,
            model=hearing(config.model, task),
            data=replace(config.data, tokenizer=as_settled(reads, tokens)),
            task=task,
        )

    def index(self, samples: Samples, data: Path) -> None:
        texts = self.tokenizer.encode([self.normalise(text) for text in samples.values("text")])
        Ragged.write(data / "tokens", texts, np.int32)
        sounds = SoundStore.write(
            data, read_short(samples, self.settings), self.extract, self.settings
        )
        splits, left_out = samples.splits.copy(), dict[str, list[str]]()
        unknown = []
        for row, sample in enumerate(samples):
            learned = splits[row] == SPLITS.index("train")
            if why := self._objection(sample, sounds, row, texts[row] if learned else None):
                left_out.setdefault(why, []).append(sample["where"])
                splits[row] = NO_SPLIT
            elif Tokenizer.unknown in texts[row]:
                unknown.append(sample["where"])
        if samples.rows("train").size and not (splits == SPLITS.index("train")).any():
            why, where = next(iter(left_out.items()))
            raise GlassformerError(f"{where[0]}: {why}, as in every row; give other recordings")
        Samples.assign(data, splits)
        write_json([*remarks_on(left_out, unknown)], data / REMARKS)

    def _objection(
        self, sample: Sample, sounds: SoundStore, row: int, tokens: Int[np.ndarray, " _"] | None
    ) -> str:
        """Why a row cannot be used; empty if it can.

        Args:
            tokens: The transcript, if the row is for training.
        """
        if is_long(sample, self.settings):
            return f"a length over task.max_seconds = {self.settings.max_seconds:g}"
        frames = sounds.frames(row, self.settings.augment.fastest)
        if tokens is not None and vectors_of(frames, self.factor) < frames_needed(tokens.tolist()):
            return "a transcript too long for the sound"
        return ""

    def features(self, samples: Sound) -> Features:
        """The features of a recording at the rate of the settings."""
        return self.extract(samples)

    def model(self) -> Transcriber:
        model = build_transcriber(self.config.model, vocabulary=self.tokenizer.size)
        model.halves = self.settings.intermediate > 0
        model.mask = self.mask
        expect_blanks(model.to_token)
        return model

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        assert self.samples is not None
        rows = self.samples.rows(split)
        speed = self.settings.augment.slowest if split == "train" else 1.0
        frames = [self.sounds.frames(row, speed) for row in rows.tolist()]
        vectors = np.array([vectors_of(count, self.factor) for count in frames], dtype=np.int64)
        return vectors + self.texts.lengths[rows] + 1

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> SoundBatch:
        assert self.samples is not None
        numbers = self.samples.rows(split)[rows].tolist()
        references, mask = list[str](), self.mask
        if epoch is None:
            sounds = [self.sounds[number] for number in numbers]
            references = [self.normalise(self.samples[number]["text"]) for number in numbers]
        else:
            rngs = [row_rng(self.config.seed, epoch, number) for number in numbers]
            sounds = list(map(self.sounds.augmented, numbers, rngs))
            rng = row_rng(self.config.seed, epoch, len(self.samples) + numbers[0])
            mask = drawn_mask(self.settings.stream, self.factor, rng)
        texts = [self.texts[number] for number in numbers]
        return sound_batch(sounds, texts, rows, references, factor=self.factor, mask=mask)

    def forward(self, model: nn.Module, batch: SoundBatch, *, noise: Noise | None = None) -> Scored:
        """Scores of the tokens of every frame, and of every next token if there is a decoder."""
        writes = self.settings.ctc_weight < 1
        arguments = {
            "source": batch.layout,
            "target": batch.target_layout if writes else None,
            **given(noise=noise),
        }
        tokens = batch.decoder_input if writes else None
        if is_a(model, Transcriber):
            arguments |= {"vectors": sum(batch.vectors), "mask": batch.mask}
            scored: Scored = model(batch.features, tokens, **arguments)
        else:
            refuse_chunks(self.settings.stream)
            scored = scored_by(model, batch.features, tokens, **arguments)
        if scored.written is None:
            return scored
        written = pack(scored.written, batch.target_layout.as_packed())
        return scored._replace(written=written)

    def loss(self, output: Scored, batch: SoundBatch) -> Loss:
        return joint_loss(output, batch, self.settings)

    def divergence(self, a: Scored, b: Scored, batch: SoundBatch) -> Loss:
        return joint_divergence(a, b, batch, weight=self.settings.ctc_weight)

    def answers(self, model: nn.Module, batches: Iterable[SoundBatch]) -> Transcripts:
        """What is written for the rows of these batches, in the order of the rows."""
        searchers = trials(self.searcher, self.folder, self.settings)
        if len(searchers) == 1:
            return self._answers(model, batches, searchers)
        every = max(1, len(self.lengths("valid")) // TRIED)
        if self.timing:  # of one batch, as much as would be done on average
            return self._answers(model, batches, searchers[: -(-len(searchers) // every)])
        return self._answers(model, islice(batches, 0, None, every), searchers)

    def score(self, model: nn.Module, batches: Iterable[SoundBatch]) -> dict[str, float]:
        """Scores of greedy search, which is quicker than a beam: by CTC where it is trained."""
        greedy = replace(self.settings.decode, method="greedy", best=1)
        search = "ctc" if self.settings.ctc_weight else "attention"
        searcher = replace(self.searcher, search=search, decode=greedy, fusion=None)
        losses = MeanLoss(lambda batch: self.loss(self.forward(model, batch), batch))
        scores = self._answers(model, losses.beside(batches), [searcher]).values()
        return scores | {"loss": losses.mean()}

    def _answers(
        self, model: Any, batches: Iterable[SoundBatch], searchers: Sequence[Searcher]
    ) -> Transcripts:
        """What the first search writes; if there are several, with what each compared."""
        found: list[tuple[int, str, str, float, list[Choices]]] = []
        spent, vectors = 0.0, 0
        for batch in batches:
            started, limits = time.perf_counter(), batch.counts if self.timing else ()
            sounds = (batch.features, batch.layout, batch.vectors)
            tried = [one.search_batch(model, *sounds, limits=limits) for one in searchers]
            spent += (time.perf_counter() - started) / len(searchers)
            vectors += sum(batch.vectors)
            texts, chances = zip(*((one.text, one.score) for one in tried[0]), strict=True)
            rows = zip(*tried, strict=True) if tried[1:] else [[]] * len(texts)
            choices = [[self._choices(one) for one in row] for row in rows]
            found += zip(
                batch.row_ids.tolist(), texts, batch.references, chances, choices, strict=True
            )
        found = processes.gathered_rows(found)
        if not found:
            raise GlassformerError("there are no recordings to transcribe; give at least one")
        rows, answers, right, chances, compared = zip(*sorted(found), strict=True)
        return Transcripts(
            list(answers),
            list(right),
            self.settings.measure,
            compared,
            heard=vectors * self.factor / FRAMES_A_SECOND,
            spent=spent,
            chances=chances,
            rows=np.array(rows),
        )

    def calibrate(self, answers: Transcripts) -> None:
        references = [[text] for text in answers.right]
        written = answers.written, references, answers.chances
        self.reliability = Reliability.learn(self.folder, *written)

    def _choices(self, written: Written) -> Choices:
        return [(self.tokenizer.decode(list(one.tokens)).strip(), one) for one in written.choices]

    def for_timing(self) -> "TranscribeTask":
        other = copy(self)
        other.timing = True
        return other


def remarks_on(left_out: dict[str, list[str]], unknown: list[str]) -> Iterator[str]:
    """What to say about rows that are left out, and rows whose transcript cannot be written."""
    for why, rows in left_out.items():
        yield f"left out: {counted(len(rows), 'recording')} with {why}, first {rows[0]}"
    if unknown:
        yield (
            f"{counted(len(unknown), 'transcript')} with characters or words that training did not "
            f"learn to write, first {unknown[0]}; they count as errors"
        )
