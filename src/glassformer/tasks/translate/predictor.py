"""Translations of new texts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from glassformer.data.jagged import Jagged, Row
from glassformer.data.samples import Sample
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.explaining.alignment import (
    Alignment,
    align_words,
    as_written,
    cross_attention_weights,
)
from glassformer.explaining.views.alignment_picture import draw_alignment
from glassformer.explaining.views.alignment_terminal import AlignmentTable
from glassformer.explaining.views.pictures import check_picture
from glassformer.models.transformer import Transformer
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.served import EngineWork, SourceWriter
from glassformer.tasks.shared.generation import GenerationOptions
from glassformer.tasks.shared.own_models import refuse_other
from glassformer.tasks.shared.reliability import Reliability
from glassformer.tasks.shared.text import TextPredictor, growing, nothing_known, unseen
from glassformer.tasks.shared.written import decode_settings, token_lines
from glassformer.tasks.translate.stored_memory import MemoryPredictor, StoredMemory
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.writing import Written, as_prediction

TOGETHER = 256  # texts per chunk


class TranslatePredictor(TextPredictor[TranslateTask], SourceWriter):
    """Translations; on request with alternatives, scores of tokens and alignments."""

    def __init__(self, task: TranslateTask) -> None:
        super().__init__(task)
        self.writer = task.writer
        self.scores, self.align = False, False
        self.picture: Path | None = None

    def configured(
        self,
        *,
        scores: bool = False,
        align: bool = False,
        picture: str | Path | None = None,
        set: str | Sequence[str] | Mapping[str, Any] = (),
        **generation: Any,
    ) -> "TranslatePredictor":
        decode = decode_settings(set)
        options = GenerationOptions(decode=decode, **generation)
        other = copy(self)
        other.writer = self.task.writer.with_options(options)
        other.scores = scores or bool(decode.get("alternatives"))
        other.align = align or picture is not None
        if picture is not None:
            other.picture = Path(picture)
            check_picture(other.picture)
        return other

    @property
    def tokenizer(self) -> Tokenizer:
        return self.task.pair.source

    def from_sample(self, sample: Sample) -> str:
        return self.task.pair.as_typed(sample)

    def baseline(self) -> MemoryPredictor | None:
        stored = StoredMemory.load(self.task.folder)
        return None if stored is None else MemoryPredictor(self.task, stored)

    def example(self) -> str:
        tags = self.task.pair.tags
        return f"<{tags[0]}> ..." if tags else "..."

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Translations in order; internally, texts of similar length share a batch."""
        for texts in growing(inputs, TOGETHER):
            real = [text for text in texts if text.strip()]
            with torch.no_grad():  # not while the caller's code runs
                found = iter(self._translated(model, real) if real else ())
            for text in texts:
                shown = self._shown(model, text, next(found) if text.strip() else nothing())
                yield shown
                if (
                    self.picture is not None
                ):  # last, so that a missing font does not lose the answer
                    draw_alignment((shown.guess or shown).explanation, self.picture)

    def engine_work(self, model: nn.Module, given: str) -> EngineWork:
        if not given.strip():
            return EngineWork((), lambda found: self._shown(model, given, nothing()))
        assert isinstance(model, Transformer)
        [ids], [source] = self._read([given])

        def finish(found: Sequence[Sequence[Hypothesis]]) -> Prediction:
            written = [self.writer.written(one) for answers in found for one in answers]
            return self._shown(model, given, self._complete(written, ids))

        return EngineWork([self.writer.engine_request(model, source)], finish)

    def _read(self, texts: list[str]) -> tuple[list[Row], list[Row]]:
        """The tokens of each text, and those of them that the model reads."""
        pair, longest = self.task.pair, self.task.settings.max_length
        bare, tags = zip(*map(pair.tagged, texts), strict=True)
        rows = pair.source.encode(list(bare))
        cut = Jagged.of([ids[:longest] for ids in rows])
        return rows, pair.read(cut, np.array(tags) if pair.tags else None).rows

    def _translated(self, model: nn.Module, texts: list[str]) -> list[Prediction]:
        rows, sources = self._read(texts)
        written = self.writer.write_all(model, sources, self.task.config.data.batch_tokens)
        return [self._complete(answers, ids) for answers, ids in zip(written, rows, strict=True)]

    def _complete(self, answers: Sequence[Written], ids: Row) -> Prediction:
        """The prediction for a text of these tokens."""
        found = as_prediction(answers, self.reliability)
        return cut_short(found, len(ids) - self.task.settings.max_length)

    @property
    def reliability(self) -> Reliability | None:
        """What validation rows say of answers; nothing of ones that had to be as someone wants."""
        own = self.task.writer
        usual = self.writer.words == own.words and self.writer.decode.method == own.decode.method
        return self.task.reliability if usual else None

    def _shown(self, model: nn.Module, text: str, found: Prediction) -> Prediction:
        """The prediction with the requested lines; none where nothing of a text is known."""
        shown, source = self._with_lines(model, text, found), self.task.pair.source
        [ids] = source.encode([self.task.pair.tagged(text)[0]])
        if found.empty or not nothing_known(source, ids):
            return shown
        return shown.without_answer(unseen(source))

    def _with_lines(self, model: nn.Module, text: str, found: Prediction) -> Prediction:
        """The prediction with the requested lines below it."""
        others = found.details["alternatives"]
        below: list[Any] = [f"  or {other['text']}\t{other['probability']:.3f}" for other in others]
        if self.scores:
            below += token_lines(found.details["tokens"])
        if not self.align:
            return replace(found, below=below)
        alignment = self.alignment(model, text, found)
        below.append(AlignmentTable(alignment))
        details = {**found.details, "alignment": alignment.as_values()}
        return replace(found, details=details, below=below, explanation=alignment)

    @torch.no_grad()
    def alignment(self, model: nn.Module, text: str, found: Prediction) -> Alignment:
        """Which words of a text each word of its translation attended to."""
        refuse_other(model, Transformer, align=True)
        assert isinstance(model, Transformer)
        if not found.details["tokens"]:  # for an empty text
            return Alignment((), (), torch.zeros(0, 0))
        pair = self.task.pair
        bare, tag = pair.tagged(text)
        [ids] = pair.source.encode([bare])
        cut = Jagged.of([ids[: self.task.settings.max_length]])
        source = pair.read(cut, tag).values.tolist()
        target = [token["id"] for token in found.details["tokens"]]
        decoder_input = [Tokenizer.start, *target[:-1]]
        weights = cross_attention_weights(model, source, decoder_input).mean((0, 1))  # (T, S)
        aligned = align_words(pair.source, pair.target, source, target, weights.float().cpu())
        words = as_written(aligned.source, bare, pair.source.clean(bare))
        return replace(aligned, source=words)


def nothing() -> Prediction:
    """The translation of an empty text, which needs no model."""
    return Prediction("", 1.0, {"score": 0.0, "tokens": [], "alternatives": []}, empty=True)


def cut_short(prediction: Prediction, unread: int) -> Prediction:
    """The prediction, with a note on how many tokens of its text were not read, if any."""
    if unread <= 0:
        return prediction
    return replace(
        prediction,
        details={**prediction.details, "unread": unread},
        note=f"is too long: its last {unread:,} tokens were ignored",
    )
