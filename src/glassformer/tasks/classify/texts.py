"""Texts as a classifier reads them: tokens, of a long text some pieces or the beginning."""

from dataclasses import fields, replace
from itertools import repeat
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from torch import nn

from glassformer.config import require
from glassformer.config.run import Config
from glassformer.data.batches import row_noise, row_rng
from glassformer.data.jagged import Jagged, places_in_rows
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Sample, Samples
from glassformer.data.text.bpe_dropout import BpeDropout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.models.transformer import ClassScores, Noise
from glassformer.tasks.classify.long_texts import WAYS
from glassformer.tasks.classify.spelling import spelling_of
from glassformer.tasks.shared.batches import TextBatch, text_batch
from glassformer.tasks.shared.label_inputs import Inputs, Read, Rows
from glassformer.tasks.shared.ngrams import learn
from glassformer.tasks.shared.own_models import given
from glassformer.tasks.shared.sound_settings import SoundConfig
from glassformer.tasks.shared.text import (
    attends,
    hidden_at_random,
    index_texts,
    on_gpu,
    reaching,
    take_tokens,
)

PIECES, HIDDEN = range(2)  # streams of random numbers: which piece is read, what is hidden of it


class TextInputs(Inputs):
    """Texts."""

    role = noun = "text"
    epochs = 8.0
    batch = TextBatch

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.settings = config, config.task
        self.tokenizer = Tokenizer.load(folder / "tokenizer.json")
        self.source = self.tokenizer.size
        if config.model.frontend.word_grams:
            self.spelling = spelling_of(self.tokenizer)
        if data is not None:
            self.samples = Samples.open(data)
            self.tokens = Ragged.open(data / "tokens", below=self.source)
        dropout = config.data.tokenizer.dropout
        self.bpe_dropout = BpeDropout(self.tokenizer) if dropout else None

    @staticmethod
    def prepare(config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        refuse_settings_of_sounds(config.task)
        refuse_ngrams(config, samples)
        refuse_vectors(config, origin)
        tokenizer, settled = take_tokens(config.data.tokenizer, samples, origin)
        require(
            not config.model.frontend.word_grams or tokenizer.kind == "characters",
            f"model.frontend.word_grams reads words from characters, but the tokens are of kind "
            f"{tokenizer.kind}; use data.tokenizer.kind=characters, or leave it out",
        )
        tokenizer.save(folder / "tokenizer.json")
        model = reaching(config.model, config.task.max_length)
        return replace(config, model=model, data=replace(config.data, tokenizer=settled))

    def index(self, samples: Samples, data: Path) -> None:
        index_texts(self.tokenizer, samples, data)

    def lengths(self, numbers: Rows, *, training: bool) -> Rows:
        full = self.tokens.lengths[numbers] + 1  # with the end
        longest = self.settings.max_length - 1  # the start is one more
        pieces = 1 if training else WAYS[self.settings.long].pieces(full, longest)
        return pieces * (np.minimum(full, longest) + 1)

    def read(self, numbers: Rows, epoch: int | None) -> Read:
        if epoch is None:
            pieces, text_of = self.cut(self.tokens, numbers)
        else:
            pieces, text_of = self._with_noise(numbers, epoch), np.arange(len(numbers))
        return *text_batch(pieces, packed=not self.padded), text_of

    def _with_noise(self, numbers: Int[np.ndarray, " chosen"], epoch: int) -> Jagged:
        """One piece of each sample, with what training adds to it."""
        seed, share = self.config.seed, self.config.data.token_dropout
        picked = row_noise(seed, epoch, numbers, np.ones_like(numbers), stream=PIECES)
        if self.bpe_dropout is None:
            pieces, _ = self.cut(self.tokens, numbers, picked)
        else:
            broken = self._broken(self.bpe_dropout, numbers, epoch)
            pieces, _ = self.cut(broken, np.arange(len(numbers)), picked)
        if not share:
            return pieces
        noise = row_noise(seed, epoch, numbers, pieces.lengths, stream=HIDDEN)
        return hidden_at_random(pieces, share, self.tokenizer.mask, noise)

    def _broken(
        self, dropout: BpeDropout, numbers: Int[np.ndarray, " chosen"], epoch: int
    ) -> Jagged:
        """The tokens of samples, segmented anew in every epoch."""
        seed, share = self.config.seed, self.config.data.tokenizer.dropout
        texts = (self.samples[number]["text"] for number in numbers.tolist())
        rngs = (row_rng(seed, epoch, number) for number in numbers.tolist())
        return Jagged.of(list(map(dropout.encode, texts, repeat(share), rngs)))

    def whole_or_cut(self, texts: Jagged) -> tuple[Jagged, Int[np.ndarray, " pieces"]]:
        """All pieces that are read of some texts, and which text each is of."""
        every = np.arange(len(texts.lengths))
        if texts.lengths.max() + 2 <= self.settings.max_length:
            return texts.between(self.tokenizer.start, self.tokenizer.end), every
        return self.cut(texts, every)

    def cut(
        self,
        texts: Jagged | Ragged,
        rows: Int[np.ndarray, " chosen"],
        picked: Float[np.ndarray, " chosen"] | None = None,
    ) -> tuple[Jagged, Int[np.ndarray, " pieces"]]:
        """The pieces that are read of some rows of `texts`, and which of `rows` each is of.

        Each begins with a start, and a text ends with an end.

        Args:
            picked: A number in [0, 1) for each row, to pick one of its pieces; all without it.
        """
        way, longest = WAYS[self.settings.long], self.settings.max_length - 1
        lengths = texts.lengths[rows] + 1  # with the end
        counts = way.pieces(lengths, longest)
        if picked is None:
            text_of, piece = np.repeat(np.arange(len(rows)), counts), places_in_rows(counts)
        else:
            text_of, piece = np.arange(len(rows)), (picked * counts).astype(np.int64)
        read = way.read(lengths[text_of], piece, longest)
        row = rows[text_of][read.row_of]
        inside = read.values < texts.lengths[row]
        ids = np.full(len(row), self.tokenizer.end)
        ids[inside] = texts.values[(texts.starts[row] + read.values)[inside]]
        return Jagged(ids, read.lengths).before(self.tokenizer.start), text_of

    @property
    def padded(self) -> bool:
        form, config = self.config.data.form, self.config
        packs = on_gpu(config.machine) and attends(config.model)
        return form == "padded" or (form == "auto" and not packs)

    @property
    def mixes_lengths(self) -> bool:
        return not self.padded and attends(self.config.model)

    def forward(self, model: nn.Module, batch: TextBatch, noise: Noise | None) -> ClassScores:
        """Scores of the labels."""
        return model(batch.ids, layout=batch.layout, **given(noise=noise))

    def shown(self, sample: Sample) -> str:
        return str(sample["text"])


def refuse_ngrams(config: Config, samples: Samples) -> None:
    """Refuse to promise n-grams that cannot be fitted, before anything is trained."""
    if config.model.ngrams == "yes":
        learn("linear_model", "model.ngrams = yes needs")
        require(
            bool(len(samples.rows("valid"))),
            "model.ngrams = yes needs validation rows to weigh them, found none; give some with "
            "--valid or --set data.valid_share=0.1, or leave it out",
        )


def refuse_vectors(config: Config, origin: Path | None) -> None:
    """Refuse vectors for weights that come from elsewhere."""
    if config.task.vectors != "random":
        require(
            origin is None,
            f"task.vectors and --from {origin} both set the initial weights; drop one",
        )
        require(not config.own_model, "task.vectors has no effect on your own model; leave it out")


def refuse_settings_of_sounds(task: SoundConfig, noun: str = "texts") -> None:
    """Refuse settings that have an effect on recordings only."""
    usual = SoundConfig()
    for one in fields(SoundConfig):
        require(
            getattr(task, one.name) == getattr(usual, one.name),
            f"task.{one.name} has no effect on {noun}; leave it out",
        )
