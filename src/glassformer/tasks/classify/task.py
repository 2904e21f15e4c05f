"""`classify`: one label, or several, for a text or a recording, with n-grams beside the model."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config.own_code import is_own
from glassformer.config.run import Config
from glassformer.core.layout import Layout
from glassformer.data.samples import Samples
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.models.ensemble import members_of
from glassformer.models.frontends.words import WordPhrases
from glassformer.tasks.classify.blend import Blend, NgramPart
from glassformer.tasks.classify.sequences import SequenceInputs
from glassformer.tasks.classify.sounds import SoundInputs
from glassformer.tasks.classify.stored_baseline import StoredBaseline
from glassformer.tasks.classify.texts import TextInputs
from glassformer.tasks.classify.unlabelled import UnlabelledTexts
from glassformer.tasks.classify.word_vectors import word_vectors
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_inputs import Inputs
from glassformer.tasks.shared.label_task import LabelTask
from glassformer.tasks.shared.losses import IGNORED
from glassformer.tasks.shared.sound import SOUND_FRONTENDS


class ClassifyTask(LabelTask):
    """Texts or recordings, and their labels."""

    name = "classify"

    def __init__(self, config: Config, folder: Path, data: Path | None) -> None:
        super().__init__(config, folder, data, inputs_of(config))
        self.unlabelled = None
        if self.samples is not None and config.data.unlabelled and data == folder / "data":
            labelled = sum(len(self.samples.rows(split)) for split in ("train", "valid"))
            self.unlabelled = UnlabelledTexts.of(config, folder, labelled)

    @classmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        config = cls.settle_labels(config, samples, folder)
        kind: type[Inputs] = SoundInputs if SoundInputs.role in samples.spools else TextInputs
        if is_own(config.model.frontend.kind):
            kind = SequenceInputs
        kind.refuse_others(samples)
        return kind.prepare(config, samples, folder, origin)

    def start(self, model: nn.Module) -> str | None:
        if self.settings.vectors == "random":
            return None
        assert self.samples is not None
        assert isinstance(self.inputs, TextInputs)
        tokens, rows = self.inputs.tokens, self.samples.rows("train")
        texts = tokens.take(rows, int(tokens.lengths[rows].max()))
        tables = [
            one.get_parameter("table.weight")
            for one in members_of(model.frontend)
            if not isinstance(one, WordPhrases)  # which has no vectors of tokens
        ]
        vocabulary, dim = tables[0].shape
        vectors, known = word_vectors(
            torch.from_numpy(texts.values).long(),
            torch.from_numpy(texts.row_of),
            vocabulary=vocabulary,
            dim=dim,
            seed=self.config.seed,
        )
        with torch.no_grad():
            for table in tables:
                table[known] = vectors[known]
        return f"the vectors of {len(known):,} tokens start from the tokens around them"

    def lengths(self, split: str) -> Int[np.ndarray, " rows"]:
        own = super().lengths(split)
        if split != "train" or self.unlabelled is None:
            return own
        return own + self.unlabelled.typical_length

    def batch(self, split: str, rows: Int[np.ndarray, " chosen"], epoch: int | None) -> Any:
        if split != "train" or epoch is None or self.unlabelled is None:
            return super().batch(split, rows, epoch)
        assert self.samples is not None
        read, layout, _ = self.unlabelled.read(rows, epoch)
        known = self.labels_of(self.samples.rows("train")[rows], epoch)
        labels = torch.cat([known, torch.full_like(known, IGNORED)])
        return self.inputs.batch(read, layout, labels, torch.from_numpy(rows).repeat(2))

    @property
    def reader(self) -> Tokenizer | None:
        return getattr(self.inputs, "tokenizer", None)

    @cached_property
    def stored(self) -> StoredBaseline | None:
        """The n-gram model that the run keeps, as a part of the model or beside it."""
        return StoredBaseline.load(self.folder)

    @cached_property
    def blend(self) -> Blend | None:
        """How the n-grams take part; None if they do not."""
        found = Blend.load(self.folder)
        return found if found is not None and found.kept else None

    @property
    def needs_network(self) -> bool:
        return self.blend is None or self.blend.model != 0

    def without_network(self) -> nn.Module:
        if self.needs_network:
            return super().without_network()
        return NoNetwork(self.classes)

    def combine(self, answers: ClassAnswers, split: str) -> ClassAnswers:
        if self.blend is None or answers.rows is None:
            return answers
        assert self.samples is not None
        numbers = self.samples.rows(split)[answers.rows]
        return self.with_ngrams(answers, [self.samples[row]["text"] for row in numbers.tolist()])

    def with_ngrams(self, answers: ClassAnswers, texts: Sequence[str]) -> ClassAnswers:
        """The answers to these texts, with what n-grams add if they are part of the model."""
        if self.blend is None:
            return answers
        if self.stored is None:
            raise GlassformerError(
                f"{self.folder}: the files of its n-grams are gone; copy the run again"
            )
        part = NgramPart(self.stored.logits(texts), self.blend)
        return replace(answers, ngrams=part)


class NoNetwork(nn.Module):
    """Stands for a network that a run does not keep, where n-grams alone answer: all scores are 0.

    Args:
        classes: The number of labels.
    """

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(classes), requires_grad=False)

    def forward(
        self, ids: Int[Tensor, "..."], *, layout: Layout, **call: Any
    ) -> Float[Tensor, "B C"]:
        """A zero for each label of each row."""
        return self.scores.expand(layout.rows, -1)


def inputs_of(config: Config) -> type[Inputs]:
    """What a run reads."""
    kind = config.model.frontend.kind
    if is_own(kind):
        return SequenceInputs
    return SoundInputs if kind in SOUND_FRONTENDS else TextInputs
