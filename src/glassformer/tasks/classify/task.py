"""`classify`: one label, or several, for a text.

An encoder reads the text, a pool over its real tokens makes one vector of it, and a layer scores
the labels. Any encoder of the configuration will do: attention, GRU, LSTM or TCN.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import repeat
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config.run import Config
from glassformer.data.batches import row_noise, row_rng
from glassformer.data.jagged import Jagged, places_in_rows
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Samples
from glassformer.data.text.bpe_dropout import BpeDropout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.metrics.calibration import log_loss
from glassformer.models.build import build_classifier
from glassformer.models.transformer import Classifier, Noise
from glassformer.tasks.classify.answers import ClassAnswers
from glassformer.tasks.classify.labels import Labels
from glassformer.tasks.classify.long_texts import WAYS
from glassformer.tasks.job import JobTask
from glassformer.tasks.shared.batches import TextBatch, text_batch
from glassformer.tasks.shared.text import (
    attends,
    hidden_at_random,
    index_texts,
    on_gpu,
    reaching,
    take_tokens,
)
from glassformer.tasks.task import Loss

PIECES, HIDDEN = range(2)  # streams of random numbers: which piece is read, what is hidden of it


class ClassifyTask(JobTask[TextBatch, Tensor, ClassAnswers]):
    """Texts and their labels."""

    name = "classify"
    goal = "accuracy"
    default_epochs = 8.0

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        self.tokenizer = Tokenizer.load(folder / "tokenizer.json")
        self.labels = Labels.load(folder / "labels.json")
        self.samples = None
        if data is not None:
            self.samples = Samples.open(data)
            self.tokens = Ragged.open(data / "tokens", below=self.tokenizer.size)
            self.label_ids = self.labels.open_numbers(data / "labels.npy", len(self.samples))
        dropout = config.data.tokenizer.dropout
        self.bpe_dropout = BpeDropout(self.tokenizer) if dropout else None
        self._weights = cache(self._weights_on)

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        labels = Labels.learn(samples, config.task)
        labels.save(folder / "labels.json")
        tokenizer, settled = take_tokens(config.data.tokenizer, samples, origin)
        tokenizer.save(folder / "tokenizer.json")
        return replace(
            config,
            model=reaching(config.model, config.task.max_length),
            data=replace(config.data, tokenizer=settled),
            task=replace(config.task, multi_label=labels.multi),
        )

    def index(self, samples: Samples, data: Path) -> None:
        index_texts(self.tokenizer, samples, data)
        np.save(data / "labels.npy", self.labels.numbers(samples), allow_pickle=False)

    def model(self) -> Classifier:
        return build_classifier(
            self.config.model, classes=len(self.labels.names), source=self.tokenizer.size
        )

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        assert self.samples is not None
        full = self.tokens.lengths[self.samples.rows(split)] + 1  # with the end
        longest = self.settings.max_length - 1  # the start is one more
        pieces = 1 if split == "train" else WAYS[self.settings.long].pieces(full, longest)
        return pieces * (np.minimum(full, longest) + 1)

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> TextBatch:
        assert self.samples is not None
        numbers = self.samples.rows(split)[rows]
        if epoch is None:
            pieces, text_of = self.cut(self.tokens, numbers)
        else:
            pieces, text_of = self._with_noise(numbers, epoch), np.arange(len(rows))
        ids, layout = text_batch(pieces, packed=not self.padded)
        label_ids = self.label_ids[numbers[text_of]]
        labels = torch.from_numpy(label_ids.astype(np.float32 if self.labels.multi else np.int64))
        return TextBatch(ids, layout, labels, torch.from_numpy(rows[text_of]))

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
        assert self.samples is not None
        seed, share = self.config.seed, self.config.data.tokenizer.dropout
        texts = (self.samples[number]["text"] for number in numbers.tolist())
        rngs = (row_rng(seed, epoch, number) for number in numbers.tolist())
        return Jagged.of(list(map(dropout.encode, texts, repeat(share), rngs)))

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

    def forward(
        self, model: nn.Module, batch: TextBatch, *, noise: Noise | None = None
    ) -> Float[Tensor, "B C"]:
        return model(batch.ids, layout=batch.layout, noise=noise).float()

    def loss(self, output: Float[Tensor, "B C"], batch: TextBatch) -> Loss:
        smoothing = self.settings.label_smoothing
        if self.labels.multi:
            target = batch.labels * (1 - smoothing) + smoothing / 2
            rare = self._weights(output.device) if self.settings.class_weights else None
            losses = F.binary_cross_entropy_with_logits(
                output, target, pos_weight=rare, reduction="none"
            ).sum(1)
        else:
            losses = F.cross_entropy(
                output, batch.labels, reduction="none", label_smoothing=smoothing
            )
        return self._counted(losses, batch)

    def divergence(
        self, a: Float[Tensor, "B C"], b: Float[Tensor, "B C"], batch: TextBatch
    ) -> Loss:
        if self.labels.multi:
            yes, no = F.logsigmoid(a), F.logsigmoid(-a)
            apart = yes.exp() * (yes - F.logsigmoid(b)) + no.exp() * (no - F.logsigmoid(-b))
        else:
            log_a, log_b = a.log_softmax(-1), b.log_softmax(-1)
            apart = log_a.exp() * (log_a - log_b)
        return self._counted(apart.sum(1), batch)

    def _counted(self, losses: Float[Tensor, " B"], batch: TextBatch) -> Loss:
        """The sum of the texts' losses; each counts one, or what its label weighs."""
        weights = torch.ones_like(losses)
        if self.settings.class_weights and not self.labels.multi:
            weights = self._weights(losses.device)[batch.labels]
        if batch.layout.fillers is not None:
            weights = weights.masked_fill(batch.layout.fillers, 0.0)
        return Loss((losses * weights).sum(), weights.sum())

    def _weights_on(self, device: torch.device) -> Float[Tensor, " C"]:
        return torch.from_numpy(self.labels.weights).to(device)

    def answers(self, model: nn.Module, batches: Iterable[TextBatch]) -> ClassAnswers:
        """What the model says about the rows of these batches, in the order of the rows."""
        pieces = ((self.forward(model, batch), batch.labels, batch.row_ids) for batch in batches)
        return ClassAnswers.gather(pieces, multi=self.labels.multi).at(self.labels.temperature)

    def score(self, model: nn.Module, batches: Iterable[TextBatch]) -> dict[str, float]:
        found = self.answers(model, batches)
        return {
            "accuracy": found.accuracy(),
            "macro_f1": found.macro_f1(),
            "loss": log_loss(found.logits, found.labels),
        }
