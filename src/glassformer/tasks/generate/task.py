"""`generate`: learn from texts which token comes next, and continue them.

A language model: a decoder alone (Radford et al., 2018). Texts travel packed, in windows of one
size, and do not see each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer import processes
from glassformer.config import ModelConfig, TokenizerConfig, require
from glassformer.config.run import Config
from glassformer.core.layout import pack, pad
from glassformer.data.arrays import map_numbers
from glassformer.data.rows import CONTINUED
from glassformer.data.samples import Samples
from glassformer.data.shards import Shards
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.models.build import build_language_model
from glassformer.models.transformer import LanguageModel, Noise
from glassformer.tasks.generate.answers import DOCUMENTS, SPELT_OUT, Likelihoods
from glassformer.tasks.generate.batch import WindowBatch, window_batch
from glassformer.tasks.generate.stream import Numbers, Stream
from glassformer.tasks.generate.unknown import TextSizes
from glassformer.tasks.generate.windows import SlidingWindows, TrainingWindows
from glassformer.tasks.job import JobTask
from glassformer.tasks.shared.losses import (
    IGNORED,
    smoothing_note,
    token_divergence,
    token_loss,
)
from glassformer.tasks.shared.own_models import given, is_a
from glassformer.tasks.shared.text import as_settled, take_tokens, trained
from glassformer.tasks.task import Loss

CONTINUED_FILE = "continued.npy"
SMALL = 2_000_000  # characters of text: with fewer, each is a token
LEARNED_FROM = 200_000_000  # characters that a tokenizer is trained on, at most


class GenerateTask(JobTask[WindowBatch, Tensor, Likelihoods]):
    """Texts to continue."""

    name = "generate"
    goal = "bits_per_byte"
    higher_is_better = False
    perfect = 0.0
    default_epochs = 10.0

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        self.tokenizer = Tokenizer.load(folder / "tokenizer.json")
        self.samples = None
        if data is not None:
            self.samples = Samples.open(data)
            count = len(self.samples)
            self.tokens = Shards.open(data, below=self.tokenizer.size, rows=count)
            path = data / CONTINUED_FILE
            self.continued = map_numbers(path, (count,), below=2).astype(bool)
        self.stream = cache(self._stream)
        self.sliding = cache(self._sliding)

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        wanted = config.data.tokenizer
        require(
            wanted.kind != "words",
            "data.tokenizer.kind = words loses the spaces of a text; use bpe, unigram, characters "
            "or bytes",
        )
        if origin is None:
            tokenizer = learned_tokens(wanted, samples)
            settled = as_settled(wanted, tokenizer)
        else:
            tokenizer, settled = take_tokens(wanted, samples, origin)
        tokenizer.save(folder / "tokenizer.json")
        model = reaching(config.model, config.task.max_length)
        return replace(config, model=model, data=replace(config.data, tokenizer=settled))

    def index(self, samples: Samples, data: Path) -> None:
        Shards.write(data, samples.values("text"), self.tokenizer)
        continued = [CONTINUED in sample for sample in samples]
        np.save(data / CONTINUED_FILE, np.array(continued, dtype=np.uint8), allow_pickle=False)

    def model(self) -> LanguageModel:
        return build_language_model(self.config.model, vocabulary=self.tokenizer.size)

    def _stream(self, split: str) -> Stream:
        assert self.samples is not None
        return Stream(self.tokens, self.samples.rows(split), self.continued)

    @cached_property
    def training(self) -> TrainingWindows:
        """The windows to train on."""
        return TrainingWindows(self.stream("train"), self.settings.max_length)

    def _sliding(self, split: str) -> SlidingWindows:
        settings = self.settings
        sizes = settings.max_length, settings.evaluation_stride
        text_sizes = TextSizes(self.tokenizer, partial(self.texts, split))
        return SlidingWindows(self.stream(split), *sizes, text_sizes)

    def texts(self, split: str, documents: Numbers) -> Iterator[str]:
        """The texts of some documents of a split."""
        assert self.samples is not None
        rows = self.samples.rows(split)[documents]
        return (sample["text"] for sample in self.samples.take(rows.tolist()))

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        return self.training.lengths if split == "train" else self.sliding(split).lengths

    def lengthened(self, times: int) -> Config:
        settings = replace(self.settings, max_length=times * self.settings.max_length)
        return replace(self.config, task=settings)

    def where(self, split: str, row: int) -> str:
        return f"window {row + 1} of the {split} split"

    @property
    def padded(self) -> bool:
        return False

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> WindowBatch:
        if split == "train":
            return window_batch(self.training.take(rows, self.config.seed, epoch or 0))
        return window_batch(*self.sliding(split).take(rows))

    def forward(
        self, model: nn.Module, batch: WindowBatch, *, noise: Noise | None = None
    ) -> Float[Tensor, "N V"] | Float[Tensor, " *N"]:
        """The cross-entropy of each next token or of all; their scores where those are needed."""
        if not is_a(model, LanguageModel):
            return scores_in_rows(model, batch, noise)
        if self.needs_scores:
            return model(batch.ids, layout=batch.layout, noise=noise)
        smoothing = self.settings.label_smoothing
        return model(batch.ids, layout=batch.layout, labels=batch.labels, smoothing=smoothing)

    @property
    def needs_scores(self) -> bool:
        """Whether training compares the scores of two passes."""
        regularise = self.config.train.regularise
        return bool(regularise.r_drop or regularise.vat.weight)

    @property
    def objective_note(self) -> str | None:
        return smoothing_note(self.settings.label_smoothing)

    def loss(self, output: Float[Tensor, "N V"] | Float[Tensor, " *N"], batch: WindowBatch) -> Loss:
        if output.ndim == 2:
            return token_loss(output, batch.labels, smoothing=self.settings.label_smoothing)
        return Loss(output.sum(), (batch.labels != IGNORED).sum().float())

    def divergence(
        self, a: Float[Tensor, "N V"], b: Float[Tensor, "N V"], batch: WindowBatch
    ) -> Loss:
        return token_divergence(a, b, batch.labels)

    def answers(self, model: nn.Module, batches: Iterable[WindowBatch]) -> Likelihoods:
        """How likely the model finds the texts of these batches, in the order of the texts."""
        documents, nll, labels, sizes = [], [], [], []
        for batch in batches:
            assert batch.documents is not None
            assert batch.bytes is not None
            counts = batch.labels != IGNORED
            if is_a(model, LanguageModel):
                losses = model(batch.ids, layout=batch.layout, labels=batch.labels)
            else:
                scores = scores_in_rows(model, batch).float()
                losses = F.cross_entropy(scores, batch.labels, reduction="none")
            nll.append(losses[counts].cpu())
            labels.append(batch.labels[counts].cpu())
            documents.append(batch.documents[counts.cpu()])
            sizes.append(batch.bytes[counts.cpu()])
        if not documents:
            raise GlassformerError("there are no texts to score; give at least one")
        tokens = (processes.gathered(torch.cat(some)) for some in (documents, nll, labels, sizes))
        return self.likelihoods(*(some.numpy() for some in tokens))

    def likelihoods(
        self,
        documents: Int[np.ndarray, " counted"],
        nll: Float[np.ndarray, " counted"],
        labels: Int[np.ndarray, " counted"],
        sizes: Int[np.ndarray, " counted"],
    ) -> Likelihoods:
        """The likelihoods of tokens, of so many bytes each, added up by document."""
        rows, document = np.unique(documents, return_inverse=True)
        spelt_out = np.where(labels == Tokenizer.unknown, SPELT_OUT, 0.0)
        return Likelihoods(
            np.bincount(document, nll + spelt_out),
            np.bincount(document).astype(np.float64),
            np.bincount(document, sizes),
            rows,
        )

    def sampled(self, answers: Likelihoods, split: str) -> Likelihoods:
        """By document, or by groups of documents."""
        found = super().sampled(answers, split)
        groups = found.units.groups
        several = groups is not None and len(np.unique(groups)) < len(groups)
        return found if several else replace(found, units=DOCUMENTS)

    def score(self, model: nn.Module, batches: Iterable[WindowBatch]) -> dict[str, float]:
        return self.answers(model, batches).values()


def scores_in_rows(
    model: nn.Module, batch: WindowBatch, noise: Noise | None = None
) -> Float[Tensor, "N V"]:
    """Scores of each next token by a model of one's own, which reads padded rows."""
    layout = batch.layout
    found = model(pad(batch.ids, layout), layout=layout.as_padded(), **given(noise=noise))
    return pack(found, layout)


def learned_tokens(config: TokenizerConfig, samples: Samples) -> Tokenizer:
    """A tokenizer of the training texts; of little text, its characters."""
    if config.kind == "auto":
        characters = sum(map(len, beginning(samples, SMALL)))
        config = replace(config, kind="characters" if characters < SMALL else "bpe")
    return trained(config, beginning(samples, LEARNED_FROM))


def beginning(samples: Samples, characters: int) -> Iterator[str]:
    """The training texts, until they have so many characters."""
    seen = 0
    for text in samples.values("text", "train"):
        yield text
        seen += len(text)
        if seen >= characters:
            return


def reaching(model: ModelConfig, longest: int) -> ModelConfig:
    """The model with positions for so many tokens, refused if it cannot read packed texts."""
    writes = model.decoder
    if writes is None:
        raise GlassformerError("a language model is a decoder; set model.decoder")
    require(
        writes.kind == "attention",
        f"model.decoder.kind = {writes.kind} reads what another stack has read, and here there is "
        f"none; use attention",
    )
    return replace(model, decoder=replace(writes, max_length=max(writes.max_length, longest)))
