"""`pretrain`: fill gaps in raw text, so that an encoder knows the language before it sees labels.

A masked language model (Devlin et al., 2018). Texts are cut into pieces and travel packed; whole
words are hidden. `train classify --from RUN` goes on from what it learned.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt64
from torch import Tensor, nn

from glassformer import processes
from glassformer.config.run import Config
from glassformer.data.batches import row_noise
from glassformer.data.jagged import Jagged
from glassformer.data.ragged import Ragged
from glassformer.data.samples import Samples
from glassformer.data.text.coders import SPECIALS
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.metrics.units import ROWS, Units
from glassformer.models.build import build_masked_model
from glassformer.models.transformer import MaskedModel, Noise
from glassformer.tasks.job import JobTask
from glassformer.tasks.pretrain.masking import choose_words, hide, worth_predicting
from glassformer.tasks.shared.batches import TextBatch, text_batch
from glassformer.tasks.shared.losses import token_divergence, token_loss
from glassformer.tasks.shared.own_models import given
from glassformer.tasks.shared.text import attends, index_texts, reaching, take_tokens
from glassformer.tasks.task import Loss

STILL = 2**31  # the epoch of evaluation, where gaps are the same every time and in every run
WORDS, FATES = range(2)  # streams of random numbers: which words are chosen, what becomes of them


@dataclass(frozen=True, eq=False, slots=True)
class GapAnswers:
    """By piece of a text: the negative log-likelihood of the hidden tokens, how many were right.

    Attributes:
        gaps: How many tokens were hidden.
        rows: The number of each piece in its split.
        units: What the pieces are sampled by.
    """

    nll: Float[np.ndarray, " N"]
    right: Float[np.ndarray, " N"]
    gaps: Float[np.ndarray, " N"]
    rows: Int[np.ndarray, " N"] | None = None
    units: Units = ROWS


class PretrainTask(JobTask[TextBatch, Tensor, GapAnswers]):
    """Texts with gaps."""

    name = "pretrain"
    goal = "loss"
    higher_is_better = False
    default_epochs = 10.0

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        self.config, self.folder, self.settings = config, folder, config.task
        self.tokenizer = Tokenizer.load(folder / "tokenizer.json")
        self.samples = None
        if data is not None:
            self.samples = Samples.open(data)
            self.tokens = Ragged.open(data / "tokens", below=self.tokenizer.size)
        self.pieces = cache(self._pieces)

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        tokenizer, settled = take_tokens(config.data.tokenizer, samples, origin)
        tokenizer.save(folder / "tokenizer.json")
        model = reaching(config.model, config.task.max_length)
        return replace(config, model=model, data=replace(config.data, tokenizer=settled))

    def index(self, samples: Samples, data: Path) -> None:
        index_texts(self.tokenizer, samples, data)

    def model(self) -> MaskedModel:
        return build_masked_model(self.config.model, vocabulary=self.tokenizer.size)

    @property
    def relative_work(self) -> float:
        """To fill a gap, every word of the vocabulary is scored as well."""
        model = self.model()
        encoder = sum(weight.numel() for weight in model.encoder.parameters())
        gaps = self.settings.masked * model.frontend.vocabulary * model.frontend.dim
        return (encoder + gaps) / encoder

    def _pieces(self, split: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of every piece of a split: its sample, where it starts there, and its length."""
        assert self.samples is not None
        longest = self.settings.max_length - 1  # the start is one more
        samples = self.samples.rows(split)
        full = self.tokens.lengths[samples]
        counts = -(-full // longest)
        row_ids = np.repeat(samples, counts)
        first = np.repeat(np.cumsum(counts) - counts, counts)
        starts = (np.arange(len(row_ids)) - first) * longest
        return row_ids, starts, np.minimum(longest, self.tokens.lengths[row_ids] - starts)

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        return self.pieces(split)[2] + 1

    @property
    def padded(self) -> bool:
        return self.config.data.form == "padded"

    @property
    def mixes_lengths(self) -> bool:
        return not self.padded and attends(self.config.model)

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> TextBatch:
        ids = self.tokens.slices(*(column[rows] for column in self.pieces(split)))
        seed, epoch = (0, STILL) if epoch is None else (self.config.seed, epoch)
        by_word, fates = (
            row_noise(seed, epoch, rows, ids.lengths, stream=stream) for stream in (WORDS, FATES)
        )
        words = Jagged(self.tokenizer.words_of(ids), ids.lengths)
        chosen = choose_words(words, self.settings.masked, by_word)
        hidden = hide(ids.values, chosen, self.tokenizer.mask, self.words(), fates)
        shown = Jagged(hidden, ids.lengths).before(self.tokenizer.start)
        tokens, layout = text_batch(shown, packed=not self.padded)
        targets = np.flatnonzero(worth_predicting(ids, chosen, self.tokenizer.unknown))
        row, starts = ids.row_of[targets], shown.starts
        if self.padded:
            starts = np.arange(layout.rows) * layout.longest
        positions = starts[row] + ids.places[targets] + 1  # the start is one more
        labels = ids.values[targets].astype(np.int64)
        return TextBatch(tokens, layout, *map(torch.from_numpy, (labels, rows[row], positions)))

    def words(self) -> range:
        """The tokens that are no specials."""
        return range(len(SPECIALS), self.tokenizer.size)

    def forward(
        self, model: nn.Module, batch: TextBatch, *, noise: Noise | None = None
    ) -> Float[Tensor, "positions V"]:
        """Scores of the tokens in the gaps."""
        return model(
            batch.ids, layout=batch.layout, positions=batch.positions, **given(noise=noise)
        )

    def loss(self, output: Float[Tensor, "positions V"], batch: TextBatch) -> Loss:
        return token_loss(output, batch.labels)

    def divergence(
        self, a: Float[Tensor, "positions V"], b: Float[Tensor, "positions V"], batch: TextBatch
    ) -> Loss:
        return token_divergence(a, b, batch.labels)

    def answers(self, model: nn.Module, batches: Iterable[TextBatch]) -> GapAnswers:
        """How well the model fills the gaps of these batches, in the order of the rows."""
        row_ids, nll, right = [], [], []
        for batch in batches:
            logits = self.forward(model, batch).float()
            row_ids.append(batch.row_ids.cpu())
            nll.append(F.cross_entropy(logits, batch.labels, reduction="none").cpu())
            right.append((logits.argmax(-1) == batch.labels).float().cpu())
        gaps = [processes.gathered(torch.cat(some)).numpy() for some in (row_ids, nll, right)]
        rows, row = np.unique(gaps[0], return_inverse=True)
        nll_of, right_of = (np.bincount(row, some.astype(np.float64)) for some in gaps[1:])
        return GapAnswers(nll_of, right_of, np.bincount(row).astype(np.float64), rows)

    def groups(self, split: str) -> UInt64[np.ndarray, " pieces"]:
        """The group of each piece, or else its text."""
        assert self.samples is not None
        text_of, of_text = self.pieces(split)[0], super().groups(split)
        if of_text is None:
            return text_of.astype(np.uint64)
        return of_text[np.searchsorted(self.samples.rows(split), text_of)]

    @property
    def group_noun(self) -> str:
        return "group" if self.config.data.group else "text"

    def score(self, model: nn.Module, batches: Iterable[TextBatch]) -> dict[str, float]:
        found = self.answers(model, batches)
        loss = float(found.nll.sum() / found.gaps.sum())
        right = float(found.right.sum() / found.gaps.sum())
        return {"loss": loss, "perplexity": math.exp(min(loss, 100)), "accuracy": right}
