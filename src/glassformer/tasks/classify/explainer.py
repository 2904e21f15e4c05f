"""What speaks for and against each label of a text, or of a recording."""

from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.data.jagged import Jagged
from glassformer.errors import GlassformerError
from glassformer.explaining.blank import blank_token
from glassformer.explaining.parts import AttentionMap
from glassformer.explaining.text_pieces import rows_with, text_pieces
from glassformer.explaining.watching import Maps
from glassformer.models.pooling import AttentionPool
from glassformer.models.transformer import Classifier, Noise
from glassformer.tasks.classify.blend import Blend, NgramPart
from glassformer.tasks.classify.linear import logits_without
from glassformer.tasks.classify.predictor import TextLabelPredictor, unlabelled_batches
from glassformer.tasks.classify.sequences import SequenceInputs
from glassformer.tasks.classify.sound_explainer import SoundLabelExplainer
from glassformer.tasks.classify.sounds import SoundInputs
from glassformer.tasks.classify.stored_baseline import StoredBaseline
from glassformer.tasks.classify.task import ClassifyTask, NoNetwork
from glassformer.tasks.classify.texts import TextInputs
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.shared.batches import TextBatch, text_batch
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_subject import LabelSubject, combined
from glassformer.tasks.shared.ngram_hashing import ngrams_of
from glassformer.tasks.shared.ngrams import Analyser
from glassformer.tasks.shared.targets import labelled_map

MOST = 5  # labels that are explained
MOST_PIECES = 1000  # words that only n-grams read: each is left out in turn
LONGEST_EXAMPLE = 2000  # characters of a row, where many rows are explained
NGRAMS_TOO = (
    "N-grams are part of the model: occlusion explains the whole of it, `ngrams` their part, other "
    "methods the rest."
)
ALONE = Blend(model=0.0, ngrams=1.0, kept=True, sentence="")
NGRAMS_ALONE = "N-grams alone make the prediction: only occlusion and `ngrams` explain it."
NOT_KEPT = "The run did not keep its network, which takes no part."


class LabelExplainer(Explainer[ClassifyTask, str]):
    """Explains the labels of texts."""

    def subject(
        self,
        model: nn.Module,
        given: str,
        *,
        target: str | None = None,
        unit: str | None = None,
    ) -> "LabelledText":
        return LabelledText(self.task, self.baseline, model, given, target, unit)

    def example(self, given: str) -> str:
        """The beginning of a long text where n-grams read all of it: many are read, in parts."""
        return given if self.task.blend is None else given[:LONGEST_EXAMPLE]

    @cached_property
    def baseline(self) -> StoredBaseline | None:
        """The linear model of n-grams that the run keeps, if it does."""
        return StoredBaseline.load(self.task.folder)


class LabelledText(LabelSubject):
    """A text and the labels that it may have.

    What the model does not read of a long text is in no piece. N-grams that are part of the model
    read all of it, so that words beyond are in pieces as well, up to MOST_PIECES.

    Attributes:
        written: All words or tokens of the text; `shown` are the numbers of those that are pieces.
        rows: The tokens that are read, with specials, in one row or several.
        owner: The piece of each of them, -1 for specials.
        names: Those of the first row as they are shown.
    """

    task: ClassifyTask

    def __init__(
        self,
        task: ClassifyTask,
        linear: StoredBaseline | None,
        model: nn.Module,
        text: str,
        target: str | None,
        unit: str | None,
    ) -> None:
        assert isinstance(task.inputs, TextInputs)
        self.task, self.linear, self.model, self.given = task, linear, model, text
        self.tokenizer = task.inputs.tokenizer
        self.device = next(model.parameters()).device
        found, one = text_pieces(self.tokenizer, text, unit), np.zeros(1, dtype=np.int64)
        if not found.pieces or text.isspace():
            raise GlassformerError(f"{text[:40]!r} has nothing to explain; give a text with words")
        self.rows, _ = task.inputs.cut(Jagged.of([found.ids]), one)
        places, _ = task.inputs.cut(Jagged.of([-1 - np.arange(len(found.ids))]), one)
        special = self.tokenizer.pieces(self.rows.rows[0])
        self.names = [
            found.names[-1 - place] if place < 0 else name
            for place, name in zip(places.rows[0].tolist(), special, strict=True)
        ]
        inside = places.values < 0  # specials are not
        self.written = np.array(found.pieces, dtype=object)
        piece_of = found.piece_of[-1 - places.values[inside]]
        read = np.unique(piece_of)
        first = np.arange(0 if task.blend is None else min(len(found.pieces), MOST_PIECES))
        self.shown = np.union1d(read, first)
        self.pieces = tuple(self.written[self.shown])
        [self.reason] = TextLabelPredictor(task).unseen([text], Jagged.of([found.ids]))
        self.strange = [
            at
            for at, piece in enumerate(self.shown.tolist())
            if piece in found.strange or (self.reason and self.written[piece].strip())
        ]
        self.notes = unread_notes(len(found.pieces) - len(read), task.blend)
        if task.blend is not None and len(self.pieces) < len(found.pieces):
            hidden = len(found.pieces) - len(self.pieces)
            self.notes += (
                f"Words after the first {MOST_PIECES:,} that are not shown: {hidden:,}.",
            )
        owner = np.searchsorted(self.shown, piece_of)
        self.owner = np.full(len(inside), -1)
        self.owner[inside] = owner
        owners, _ = text_batch(Jagged(self.owner + 1, self.rows.lengths), packed=False)
        self.piece_of = owners.to(self.device) - 1  # padding is 0 there
        self.whole = self._answers(torch.ones(1, len(self.pieces), dtype=torch.bool))
        self.ngram_part = self.whole.ngrams
        self._settle(self.whole, target)
        if task.blend is not None:
            self.by_ngrams_alone = not task.blend.model
            self.notes += (NOT_KEPT,) if isinstance(model, NoNetwork) else ()
            self.notes += (NGRAMS_ALONE if self.by_ngrams_alone else NGRAMS_TOO,)
        if isinstance(model, Classifier):  # rather than one of the user's own
            self.readers = self._readers(model)
            blank = blank_token(model.frontend, self.tokenizer.size, self.device)
            self.blank = blank.expand(*self.piece_of.shape, -1)

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        rows = self.rows.take(np.tile(np.arange(len(self.rows.lengths)), copies))
        ids, layout = text_batch(rows, packed=False)
        none = torch.zeros(len(rows.lengths), dtype=torch.long)
        batch = TextBatch(ids, layout, none, none).to(self.device)
        logits = self.task.forward(model, batch, noise=noise).unflatten(0, (copies, -1))
        labels = self.task.labels
        logits = combined(logits, multi=labels.multi) / labels.temperature
        if isinstance(self.ngram_part, NgramPart):  # which no vector changes
            blend, ngrams = self.ngram_part.blend, torch.from_numpy(self.ngram_part.logits)
            logits = blend.model * logits + blend.ngrams * ngrams.to(logits)
        return self._log_odds(logits)

    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        return self._log_odds(torch.from_numpy(self._answers(kept).logits))

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        tokens, found = self.names, []
        for name, weights in maps.items():
            pools = isinstance(self.model.get_submodule(name), AttentionPool)
            found.append(labelled_map(name, weights[0], ["label"] if pools else tokens, tokens))
        return tuple(found)

    def ngram_influence(self) -> Float[Tensor, "targets pieces"] | None:
        return self._of_ngrams

    @cached_property
    def _of_ngrams(self) -> Float[Tensor, "targets pieces"] | None:
        """What is lost of the log-odds without what the n-grams of each piece add to the scores.

        The log-odds are those of the whole model; of the n-grams alone where they are no part.
        """
        baseline = self.linear
        if baseline is None:
            return None
        part = self.ngram_part
        if not isinstance(part, NgramPart):
            part = NgramPart(baseline.logits([self.given]), ALONE)
        temperature, multi = baseline.record.temperature, self.task.labels.multi
        added = added_by_ngrams(baseline, self.given, self.written.tolist())[self.shown]
        without = logits_without(part.logits * temperature, added, multi) / temperature
        ngrams = np.concatenate([part.logits, without])
        network = np.tile(self.whole.without_ngrams().logits, (len(ngrams), 1))
        scores = self._log_odds(torch.from_numpy(part.blend.mixed(network, ngrams)))
        return (scores[0] - scores[1:]).mT.float()

    def _answers(self, kept: Bool[Tensor, "variants pieces"]) -> ClassAnswers:
        """The answers if only these pieces are read, with what n-grams add."""
        rows = rows_with(self.rows, self.owner, kept.numpy())
        variant = np.repeat(np.arange(len(kept)), len(self.rows.lengths))
        batches = unlabelled_batches(self.task, rows, variant)
        with torch.no_grad():
            found = self.task.answers(self.model, (batch.to(self.device) for batch in batches))
        there = np.ones((len(kept), len(self.written)), dtype=bool)
        there[:, self.shown] = kept.numpy()
        return self.task.with_ngrams(found, ["".join(self.written[line]) for line in there])


def unread_notes(unread: int, blend: Blend | None) -> tuple[str, ...]:
    """What to say of the words of a long text that the network does not read."""
    if not unread or (blend is not None and not blend.model):
        return ()
    if blend is None:
        return (f"The text is too long; words that are not read: {unread:,}.",)
    return (f"The text is too long for the network; words that only n-grams read: {unread:,}.",)


def added_by_ngrams(
    baseline: StoredBaseline, text: str, pieces: Sequence[str]
) -> Float[np.ndarray, "pieces C"]:
    """What each piece adds to the scores of a baseline, an n-gram shared among its places."""
    weights = {(one.unit, one.ngram): one.weights for one in baseline.weights_in(text)}
    total = np.zeros((len(pieces), baseline.record.classes))
    for analyser in baseline.analysers:
        for ngram, places in ngram_places(pieces, analyser).items():
            added = weights.get((analyser.unit, ngram), 0.0)
            for place in places:
                np.add.at(total, place, added / (len(places) * len(place)))
    return total


def ngram_places(
    pieces: Sequence[str], analyser: Analyser
) -> dict[str, list[Int[np.ndarray, " parts"]]]:
    """Where each n-gram of a text occurs: the pieces of its parts.

    >>> ngram_places(["Ah, ", "no!"], Analyser("word", 2))["ah no"]
    [array([0, 1])]
    """
    if analyser.unit == "word":
        parts = [(part, n) for n, one in enumerate(pieces) for part in words_in(one)]
        between = " "
    else:
        characters = [(c, n) for n, one in enumerate(pieces) for c in one]
        framed, between = [(" ", 0), *characters, (" ", len(pieces) - 1)], ""
        parts = framed[:1]
        for (before, _), (now, owner) in pairwise(framed):
            if not (before.isspace() and now.isspace()):
                parts.append((now, owner))
    found: dict[str, list[Int[np.ndarray, " parts"]]] = {}
    owners = np.array([owner for _, owner in parts])
    for size in range(1, analyser.longest + 1):
        for start in range(len(parts) - size + 1):
            ngram = between.join(part for part, _ in parts[start : start + size])
            found.setdefault(ngram, []).append(owners[start : start + size])
    return found


def words_in(text: str) -> list[str]:
    """The words of a text as n-grams have them."""
    return list(ngrams_of(text, Analyser("word", 1)))


def explainer_of(task: ClassifyTask) -> LabelExplainer | SoundLabelExplainer:
    """The explainer for what the run reads."""
    if isinstance(task.inputs, SequenceInputs):
        raise GlassformerError(
            f"{task.folder}: what its sequences consist of only their frontend knows, which is "
            f"your own; use predict"
        )
    sound = isinstance(task.inputs, SoundInputs)
    return SoundLabelExplainer(task) if sound else LabelExplainer(task)
