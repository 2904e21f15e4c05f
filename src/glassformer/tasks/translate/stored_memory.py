"""The translation memory as a run keeps it, and its answers to new texts.

`memory.json` holds the training pairs of each target language. They are counted again when the
first text is looked up.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch import nn

from glassformer.data.samples import Sample
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.files import read_json, write_json
from glassformer.tasks.predictor import BaselinePredictor, Prediction
from glassformer.tasks.shared.text import TextPredictor, growing, nothing_known, unseen
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.translation_memory import TranslationMemory

FILE = "memory.json"
TOGETHER = 256  # texts per lookup

Pairs = tuple[Sequence[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """Sources and targets by target language; under "" if rows name none."""

    pairs: Mapping[str, Pairs]
    memories: dict[str, TranslationMemory] = field(default_factory=dict)

    def memory(self, language: str) -> TranslationMemory:
        """The memory of a language, counted once."""
        if language not in self.memories:
            self.memories[language] = TranslationMemory.of(*self.pairs[language])
        return self.memories[language]

    def save(self, folder: Path) -> None:
        """Write one file, at once."""
        write_json(self.pairs, folder / FILE)

    @staticmethod
    def load(folder: Path) -> "StoredMemory | None":
        """What `save` wrote; None if the run keeps no memory."""
        if not (folder / FILE).exists():
            return None
        try:
            found = read_json(folder / FILE)
            pairs = {language: (sources, targets) for language, (sources, targets) in found.items()}
            if any(len(sources) != len(targets) for sources, targets in pairs.values()):
                raise ValueError("sources without targets")
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise GlassformerError(
                f"{folder / FILE}: not the baseline of a run ({error}); copy the run again"
            ) from None
        return StoredMemory(pairs)


class MemoryPredictor(BaselinePredictor[TranslateTask, str], TextPredictor[TranslateTask]):
    """The translations of similar training texts; the confidence is how similar they are."""

    def __init__(self, task: TranslateTask, stored: StoredMemory) -> None:
        super().__init__(task)
        self.stored = stored

    @property
    def tokenizer(self) -> Tokenizer:
        return self.task.pair.source

    def from_sample(self, sample: Sample) -> str:
        return self.task.pair.as_typed(sample)

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        for texts in growing(inputs, TOGETHER):
            yield from map(self._answer, texts)

    def _answer(self, text: str) -> Prediction:
        """The most similar pairs; no answer to a text that is like none."""
        pair = self.task.pair
        if not text.strip():
            return Prediction("", 1.0, {"alternatives": []}, empty=True)
        bare, tag = pair.tagged(text)
        language = pair.language(tag)
        if language not in self.stored.pairs:
            return Prediction("", 0.0, {"alternatives": []}).without_answer(
                f"no training pair has the target language {language}"
            )
        memory, [ids] = self.stored.memory(language), pair.source.encode([bare])
        [similarity] = memory.similarity([pair.source.clean(bare)]).toarray()
        found = dict[str, float]()
        for row in np.argsort(-similarity, kind="stable").tolist():
            found.setdefault(memory.targets[row], float(similarity[row]))
            if len(found) > self.alternatives:
                break
        (best, confidence), *rest = found.items()
        others = [{"text": other, "confidence": score} for other, score in rest]
        answer = Prediction(
            best,
            confidence,
            {"alternatives": others},
            below=[f"  or {other['text']}\t{other['confidence']:.3f}" for other in others],
        )
        known = similarity.any() and not nothing_known(pair.source, ids)
        return answer if known else answer.without_answer(unseen(pair.source))
