"""Labels for new texts and recordings."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import nn

from glassformer.core.layout import Layout
from glassformer.data.jagged import Jagged
from glassformer.data.text.tokenizer import LOSSLESS, Tokenizer
from glassformer.errors import GlassformerError
from glassformer.models.transformer import Classifier
from glassformer.tasks.classify.contributions import Contributions, WithContributions
from glassformer.tasks.classify.sequences import SequenceInputs, SequenceLabelPredictor
from glassformer.tasks.classify.sounds import SoundBatch, SoundInputs
from glassformer.tasks.classify.stored_baseline import StoredBaseline
from glassformer.tasks.classify.task import ClassifyTask, NoNetwork
from glassformer.tasks.classify.texts import TextInputs
from glassformer.tasks.classify.votes import VotePredictor
from glassformer.tasks.predictor import BaselinePredictor, Prediction
from glassformer.tasks.served import Embedder
from glassformer.tasks.shared.batches import TextBatch, row_means, text_batch
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_predictor import NextBest, unlabelled
from glassformer.tasks.shared.labels import Extend
from glassformer.tasks.shared.nearest import StoredNearest
from glassformer.tasks.shared.sound import padded_features
from glassformer.tasks.shared.sound_predictor import Recording, SoundPredictor
from glassformer.tasks.shared.text import TextPredictor, growing, nothing_known_in, on_gpu, unseen

TOGETHER = 256  # texts per chunk, more if they are short
CHARACTERS = 1 << 16  # per chunk of more texts
RECORDINGS = 16  # per batch, after the first one if more are still to come
ENOUGH = 32  # texts, which are sorted by length
NO_NGRAM = "no word and no part of a word of this text was seen in training"
CPU_TOKENS = 1024  # of a batch at most: what a narrow model makes of more leaves a CPU's cache

Rows = Int[np.ndarray, " chosen"]


class TextLabelPredictor(NextBest, TextPredictor[ClassifyTask], Embedder):
    """The label or labels of a text, and the probability of every label."""

    def __init__(self, task: ClassifyTask) -> None:
        super().__init__(task)
        assert isinstance(task.inputs, TextInputs)
        self.texts = task.inputs

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        for texts in growing(inputs, TOGETHER, CHARACTERS):
            real = [text for text in texts if text.strip()]
            found = self._labelled(model, real) if real else iter(())
            for text in texts:
                yield next(found) if text.strip() else self.task.labels.no_prediction()

    def _labelled(self, model: nn.Module, texts: Sequence[str]) -> Iterator[Prediction]:
        """The labels of some texts, none of which is empty."""
        encoded = Jagged.of(self.tokenizer.encode(texts))
        batches, device = self._unlabelled(encoded), next(model.parameters()).device
        if device.type != "cpu":
            batches = (batch.to(device) for batch in batches)
        with torch.no_grad():  # not while the caller's code runs
            answers = self.task.answers(model, batches)
        answers = self.task.with_ngrams(answers, texts)
        extend = self._contributions(answers, texts)
        found = self.task.labels.predictions(answers.probabilities(), self.alternatives, extend)
        for prediction, reason in zip(found, self.unseen(texts, encoded), strict=True):
            yield prediction.without_answer(reason) if reason else prediction

    def _contributions(self, answers: ClassAnswers, texts: Sequence[str]) -> Extend | None:
        """Adds what the parts of the model contributed; None if it has one part."""
        if answers.ngrams is None or self.task.stored is None:
            return None
        found = Contributions(answers, self.task.stored, texts, self.task.labels.names)
        return lambda row, details: WithContributions(details, found, row)

    def unseen(self, texts: Sequence[str], encoded: Jagged) -> list[str]:
        """Why there is no answer to each text; empty unless nothing in it was seen in training.

        That is no token, or, where tokens can spell any text, no n-gram.
        """
        reason, stored = unseen(self.tokenizer), self.task.stored
        found = [reason if none else "" for none in nothing_known_in(self.tokenizer, encoded)]
        if stored is None:
            return found
        spelt = any(analyser.unit == "character" for analyser in stored.analysers)
        if not spelt and self.tokenizer.kind not in LOSSLESS:
            return found
        known = stored.knows_each(texts)
        return [a or ("" if b else NO_NGRAM) for a, b in zip(found, known, strict=True)]

    def are_unknown(self, texts: Sequence[str]) -> list[bool]:
        encoded = Jagged.of(self.tokenizer.encode(texts))
        return [bool(reason) for reason in self.unseen(texts, encoded)]

    @property
    def tokenizer(self) -> Tokenizer:
        return self.texts.tokenizer

    @torch.no_grad()
    def embed(self, model: nn.Module, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """What the labels of each text are scored by; of a long text, the mean of its pieces."""
        if isinstance(model, NoNetwork):
            raise GlassformerError(
                "embeddings come from the network, which this run did not keep: n-grams alone make "
                "its predictions; train with --set model.ngrams=no"
            )
        assert isinstance(model, Classifier)
        device, found, rows = next(model.parameters()).device, [], []
        for batch in self._unlabelled(Jagged.of(self.tokenizer.encode(texts))):
            read = batch.to(device)
            found.append(model.pooled(read.ids, layout=read.layout).float().cpu().numpy())
            rows.append(batch.row_ids.numpy())
        return row_means(np.concatenate(found), np.concatenate(rows), len(texts))

    def _unlabelled(self, encoded: Jagged) -> Iterator[TextBatch]:
        """Batches of texts in pieces, grouped by length."""
        pieces, row_ids = self.texts.whole_or_cut(encoded)
        return unlabelled_batches(self.task, pieces, row_ids)

    def baseline(self) -> "BaselineLabelPredictor | None":
        stored = self.task.stored
        return None if stored is None else BaselineLabelPredictor(self.task, stored)


class BaselineLabelPredictor(BaselinePredictor[ClassifyTask, str], TextPredictor[ClassifyTask]):
    """The same from the baseline of the run; it needs no model."""

    def __init__(self, task: ClassifyTask, stored: StoredBaseline) -> None:
        super().__init__(task)
        self.stored = stored

    @property
    def tokenizer(self) -> Tokenizer:
        assert isinstance(self.task.inputs, TextInputs)
        return self.task.inputs.tokenizer

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        labels = self.task.labels
        for texts in growing(inputs, TOGETHER, CHARACTERS):
            chances = self.stored.probabilities(texts)
            found = labels.predictions(chances, self.alternatives, baseline=True)
            for text, one, known in zip(texts, found, self.stored.knows_each(texts), strict=True):
                if not text.strip():
                    yield labels.no_prediction()
                else:
                    yield one if known else one.without_answer(NO_NGRAM)


class SoundLabelPredictor(NextBest, SoundPredictor[ClassifyTask]):
    """The label or labels of a recording, and the probability of every label."""

    def __init__(self, task: ClassifyTask) -> None:
        super().__init__(task)
        assert isinstance(task.inputs, SoundInputs)
        self.sounds = task.inputs

    def predict(self, model: nn.Module, inputs: Iterable[Recording]) -> Iterator[Prediction]:
        task, device = self.task, next(model.parameters()).device
        rest, size = (
            map(self.sounds.features, inputs),
            RECORDINGS if isinstance(inputs, list) else 1,
        )
        while some := list(islice(rest, size)):
            features, layout = padded_features(some)
            none, row_ids = unlabelled(task.labels, len(some)), torch.arange(len(some))
            batch = SoundBatch(features, layout, none, row_ids).to(device)
            with torch.no_grad():
                found = task.answers(model, [batch]).probabilities()
            yield from task.labels.predictions(found, self.alternatives)
            size = RECORDINGS

    def baseline(self) -> VotePredictor | None:
        stored = StoredNearest.load(self.task.folder)
        return None if stored is None else VotePredictor(self.task, self.sounds, stored)


def predictor_of(
    task: ClassifyTask,
) -> TextLabelPredictor | SoundLabelPredictor | SequenceLabelPredictor:
    """The predictor for what the run reads."""
    if isinstance(task.inputs, SequenceInputs):
        return SequenceLabelPredictor(task)
    sound = isinstance(task.inputs, SoundInputs)
    return SoundLabelPredictor(task) if sound else TextLabelPredictor(task)


def unlabelled_batches(task: ClassifyTask, pieces: Jagged, row_ids: Rows) -> Iterator[TextBatch]:
    """Batches of what is read of some texts, grouped by length.

    Args:
        row_ids: The text that each piece is of.
    """
    lengths, budget = pieces.lengths, task.config.data.batch_tokens
    if not on_gpu(task.config.machine):
        budget = min(budget, CPU_TOKENS)
    if len(lengths) < ENOUGH and len(lengths) * lengths.max() <= budget:
        yield unlabelled_batch(task, pieces, row_ids)  # few texts are answered sooner unsorted
        return
    for rows in batches_of_lengths(lengths, budget):
        yield unlabelled_batch(task, pieces.take(rows), row_ids[rows])


def unlabelled_batch(task: ClassifyTask, pieces: Jagged, row_ids: Rows) -> TextBatch:
    """A batch of these pieces, without padding if they have one length."""
    rows, longest = len(pieces.lengths), int(pieces.lengths.max())
    if len(pieces.values) == rows * longest:
        ids = torch.from_numpy(pieces.values).long().view(rows, longest)
        layout = Layout.full(rows, longest)
    else:
        ids, layout = text_batch(pieces, packed=False)
    return TextBatch(ids, layout, unlabelled(task.labels, rows), torch.from_numpy(row_ids))


def batches_of_lengths(lengths: Int[np.ndarray, " rows"], budget: int) -> Iterator[Rows]:
    """Batches of rows of one length, which need no padding, then of what is left, long ones first.

    So nearly every batch has one size for its longest row: oneDNN takes longer to prepare a product
    of a new size than to compute it.

    >>> [batch.tolist() for batch in batches_of_lengths(np.array([3, 4, 3, 5, 3, 3, 5, 3]), 10)]
    [[3, 6], [0, 2, 4], [1, 5], [7]]
    """
    left = []
    for length in np.unique(lengths)[::-1]:
        rows, size = np.flatnonzero(lengths == length), max(1, budget // length)
        whole = len(rows) // size * size
        yield from rows[:whole].reshape(-1, size)
        left.append(rows[whole:])
    rest = np.concatenate(left)
    while len(rest):
        size = max(1, budget // lengths[rest[0]])
        yield rest[:size]
        rest = rest[size:]
