"""Texts of new recordings: paths, or samples from Python."""

from collections.abc import Iterable, Iterator
from copy import copy
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from glassformer.data.audio.extractor import Features
from glassformer.data.audio.features import frame_count
from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.tasks.predictor import Prediction, Predictor
from glassformer.tasks.transcribe.facts import Part, read_part
from glassformer.tasks.transcribe.searching import Written
from glassformer.tasks.transcribe.sounds import FRAMES_A_SECOND
from glassformer.tasks.transcribe.subtitles import (
    FORMATS,
    Spoken,
    check_subtitles,
    write_subtitles,
)
from glassformer.tasks.transcribe.task import TranscribeTask

TOGETHER = 16  # recordings per batch, after the first one

Recording = Part | np.ndarray


class TranscribePredictor(Predictor[TranscribeTask, Recording]):
    """The text of a recording; with `align`, when each word is spoken."""

    kinds = (str, Path, np.ndarray, Part)
    noun = "recording"

    def __init__(self, task: TranscribeTask) -> None:
        super().__init__(task)
        self.align = False
        self.subtitles: dict[str, Path] = {}  # by format

    def configured(self, **options: Any) -> "TranscribePredictor":
        other = copy(self)
        other.align = options.get("align", False)
        given = {form: options.get(form) for form in FORMATS}
        other.subtitles = {form: Path(path) for form, path in given.items() if path is not None}
        for path in other.subtitles.values():
            check_subtitles(path)
        if other._times and not self.task.settings.ctc_weight:
            raise GlassformerError(
                "this run was trained without CTC, which tells when words are spoken; train with "
                "--set task.ctc_weight=0.3, or leave out --align, --srt and --vtt"
            )
        return other

    def accept(self, value: Any) -> Recording:
        value = super().accept(value)
        if isinstance(value, str | Path):
            return Part(path=Path(value))
        if isinstance(value, Part):
            return value
        rate = self.task.settings.rate
        if value.ndim != 1 or value.dtype.kind != "f":
            raise GlassformerError(
                f"a recording is one channel of numbers between -1 and 1, {rate:,} a second; got "
                f"{value.dtype} of shape {value.shape}"
            )
        if not frame_count(len(value), rate) or not np.isfinite(value).all():
            raise GlassformerError(
                f"a recording has finite numbers for at least 25 ms; got {len(value)} at {rate:,} "
                f"a second; record it again"
            )
        return value.astype(np.float32)

    def from_sample(self, sample: Sample) -> Recording:
        return Part.of(sample)

    def example(self) -> str:
        return "recording.wav"

    def predict(self, model: nn.Module, inputs: Iterable[Recording]) -> Iterator[Prediction]:
        rest, size = iter(inputs), 1
        while some := list(islice(rest, size)):
            sounds = [self._features(one) for one in some]
            pieces = [cut_at_pauses(sound, self._longest) for sound in sounds]
            flat = [piece for several in pieces for piece in several]
            written = iter(self._written(model, flat))
            for several in pieces:
                yield self._prediction(several, [next(written) for _ in several])
            size = TOGETHER

    @property
    def _times(self) -> bool:
        """Whether anything needs to know when words are spoken."""
        return self.align or bool(self.subtitles)

    @property
    def _longest(self) -> int:
        return int(self.task.settings.max_seconds * FRAMES_A_SECOND)

    def _features(self, given: Recording) -> Features:
        task = self.task
        rate = task.settings.rate
        return task.features(given if isinstance(given, np.ndarray) else read_part(given, rate))

    def _written(self, model: Any, sounds: list[Features]) -> list[Written]:
        """The texts of some recordings, a few at a time."""
        found: list[Written] = []
        for start in range(0, len(sounds), TOGETHER):
            some = sounds[start : start + TOGETHER]
            found += self.task.searcher.write(model, some, times=self._times)
        return found

    def _prediction(self, pieces: list[Features], written: list[Written]) -> Prediction:
        """The texts of the pieces of a recording as one."""
        text = " ".join(one.text for one in written if one.text)
        tokens = sum(len(one.tokens) + 1 for one in written)
        score = sum(one.score for one in written)
        confidence = float(np.exp(min(0.0, score) / max(1, tokens)))
        words = list(self._words(pieces, written))
        for form, path in self.subtitles.items():
            write_subtitles(words, path, form=form)
        if not self.align:
            return Prediction(text, confidence, {})
        details = [{"word": word.text, "start": word.start, "end": word.end} for word in words]
        lines = [f"{word.start:.2f}\t{word.end:.2f}\t{word.text}" for word in words]
        return Prediction(text, confidence, {"words": details}, below=lines)

    def _words(self, pieces: list[Features], written: list[Written]) -> Iterator[Spoken]:
        """Each word, and when it is spoken, in seconds."""
        before = 0
        for piece, one in zip(pieces, written, strict=True):
            for word in one.words:
                start, end = (self._seconds(before, at) for at in (word.start, word.end))
                yield Spoken(word.text, start, end)
            before += len(piece)

    def _seconds(self, before: int, vector: int) -> float:
        return round((before + vector * self.task.factor) / FRAMES_A_SECOND, 3)


def cut_at_pauses(sound: Features, longest: int) -> list[Features]:
    """Features in pieces of at most so many frames, each cut where the second half is quietest.

    >>> sound = np.ones((10, 2), dtype=np.float16)
    >>> sound[5] = -1
    >>> [len(piece) for piece in cut_at_pauses(sound, 6)]
    [5, 5]
    """
    pieces = []
    while len(sound) > longest:
        half = max(1, longest // 2)
        loudness = sound[half:longest].astype(np.float32).mean(1)
        at = half + int(loudness.argmin())
        pieces.append(sound[:at])
        sound = sound[at:]
    return [*pieces, sound]
