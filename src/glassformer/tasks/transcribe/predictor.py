"""Texts of new recordings: paths, or samples from Python."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32
from torch import nn

from glassformer.config import require
from glassformer.data.audio.reading import read_blocks, sound_info
from glassformer.data.batches import ordered_batches
from glassformer.errors import GlassformerError
from glassformer.explaining.views.pictures import check_picture
from glassformer.models.transcriber import Transcriber
from glassformer.tasks.extension import Companion
from glassformer.tasks.predictor import Partial, Prediction
from glassformer.tasks.served import EngineWork, SourceWriter, SpeechWriter, Spoken
from glassformer.tasks.shared.nearest import StoredNearest
from glassformer.tasks.shared.own_models import refuse_other
from glassformer.tasks.shared.recordings import Part
from glassformer.tasks.shared.reliability import Reliability
from glassformer.tasks.shared.sound import FRAMES_A_SECOND
from glassformer.tasks.shared.sound_predictor import Recording, SoundPredictor
from glassformer.tasks.transcribe.alternatives import next_best, with_choices
from glassformer.tasks.transcribe.choices import Written
from glassformer.tasks.transcribe.decoder_work import DecoderWork
from glassformer.tasks.transcribe.live import LiveTranscript, as_partial, one_thread
from glassformer.tasks.transcribe.nearest import NearestPredictor
from glassformer.tasks.transcribe.other_model import open_other
from glassformer.tasks.transcribe.picture import draw_picture
from glassformer.tasks.transcribe.pieces import Piece, cut_at_pauses, windows
from glassformer.tasks.transcribe.pipe import piped_sound, standard_input, until_interrupted
from glassformer.tasks.transcribe.searching import Searcher
from glassformer.tasks.transcribe.subtitles import (
    FORMATS,
    check_subtitles,
    cues,
    subtitles,
    write_subtitles,
)
from glassformer.tasks.transcribe.task import TranscribeTask

STANDARD_INPUT = Path("-")
TOGETHER = 80  # seconds that are searched at once


class TranscribePredictor(SoundPredictor[TranscribeTask], SpeechWriter, SourceWriter):
    """The text of a recording; with `align`, when each word is spoken."""

    def __init__(self, task: TranscribeTask) -> None:
        super().__init__(task)
        self.align = self.stream = False
        self.rate: int | None = None  # of raw samples on standard input
        self.subtitle_files: dict[str, Path] = {}  # by format
        self.picture: Path | None = None
        self.alternatives = 0
        self.searcher = task.searcher

    def configured(self, **options: Any) -> "TranscribePredictor":
        other = copy(self)
        other.align, other.stream = options.get("align", False), options.get("stream", False)
        other.rate = options.get("rate")
        given = {form: options.get(form) for form in FORMATS}
        other.subtitle_files = {
            form: Path(path) for form, path in given.items() if path is not None
        }
        for path in other.subtitle_files.values():
            check_subtitles(path)
        if options.get("picture") is not None:
            other.picture = Path(options["picture"])
            check_picture(other.picture)
        if (other.align or other.subtitle_files) and not self.has_times:
            raise GlassformerError(
                "this run was trained without CTC, which tells when words are spoken; train with "
                "--set task.ctc_weight=0.3, or leave out --align, --srt and --vtt"
            )
        if other.rate is not None and not other.stream:
            raise GlassformerError("--rate is that of raw sound on standard input; add --stream -")
        if other.stream and other.picture is not None:
            raise GlassformerError(
                "a picture is one of a whole recording; leave out --picture or --stream"
            )
        if other.stream and not self.task.settings.stream.chunk:
            raise GlassformerError(
                "this run was not trained for streams; train one with --set task.stream.chunk=0.64 "
                "--set task.normalise=all, or leave out --stream"
            )
        other.alternatives = options.get("alternatives") or 0
        searcher = self._searcher(options.get("lm"), options.get("lm_weight"))
        other.searcher = with_choices(searcher, other.alternatives)
        if other.stream and (searcher is not self.searcher or other.alternatives):
            raise GlassformerError(
                "streams are not searched; leave out --lm and --alternatives, or --stream"
            )
        return other

    def _searcher(self, lm: Companion | None, weight: float | None) -> Searcher:
        """The search of the run, or one with the language model of another."""
        if lm is None:
            require(weight is None, "--lm-weight is that of --lm, which names a run; add it")
            return self.searcher
        fusion = open_other(lm, self.task.tokenizer, self.searcher, weight)
        return replace(self.searcher, fusion=fusion)

    def predict(
        self, model: nn.Module, inputs: Iterable[Recording]
    ) -> Iterator[Prediction | Partial]:
        refuse_other(model, Transcriber, stream=self.stream, picture=self.picture)
        if self.stream:
            for one in inputs:
                yield from self._live(model, one)
            return
        rest = (piece for one in inputs for piece in self._pieces(one))
        found = list[tuple[float, Written]]()
        for some in windows(rest, at_once=isinstance(inputs, list) and len(inputs) > 1):
            for piece, written in zip(some, self._written(model, some), strict=True):
                if self.picture is not None and not found:
                    draw_picture(self.task, model, piece.features, written, self.picture)
                found.append((piece.start, written))
                if piece.last:
                    yield self._prediction(found)
                    found = []
            if found:
                yield Partial(done=some[-1].end / self._seconds_of(some[-1].recording))

    def baseline(self) -> NearestPredictor | None:
        stored = StoredNearest.load(self.task.folder)
        return None if stored is None else NearestPredictor(self.task, stored, self.blocks)

    @property
    def uses_decoder(self) -> bool:
        return self.searcher.search != "ctc"

    def engine_work(self, model: Any, given: Recording) -> EngineWork:
        pieces = list(self._pieces(given))
        starts, sounds = [one.start for one in pieces], [one.features for one in pieces]
        work = DecoderWork(self.searcher, model, sounds, times=self._times)
        return EngineWork(
            work.requests(),
            lambda found: self._prediction(list(zip(starts, work.written(found), strict=True))),
        )

    def _written(self, model: Any, pieces: list[Piece]) -> list[Written]:
        """The texts of some pieces; those of similar length are searched together."""
        sounds = [piece.features for piece in pieces]
        lengths, found = np.array([len(sound) for sound in sounds]), dict[int, Written]()
        for batch in ordered_batches(lengths, TOGETHER * FRAMES_A_SECOND, padded=True):
            some = [sounds[number] for number in batch]
            written = self.searcher.write(model, some, times=self._times)
            found |= zip(batch.tolist(), written, strict=True)
        return [found[number] for number in range(len(pieces))]

    def _live(self, model: Any, recording: Recording) -> Iterator[Prediction | Partial]:
        """What a stream says, while it arrives; interrupted, what it said until then."""
        live = LiveTranscript(self.task, model)
        with one_thread(), until_interrupted() as stopped:
            for sound in self._arriving(recording, stopped):
                yield from map(as_partial, live.hear(sound))
                if stopped():
                    break
            yield from map(as_partial, live.hear(np.empty(0, dtype=np.float32), last=True))
        if not live.path.at:
            raise GlassformerError(f"{recording}: no sound, or less than 25 ms; record it again")
        latency = live.latency
        found = self._complete(live.text, live.confidence, live.words)
        details = {**found.details, "latency": latency.as_values()}
        yield replace(found, details=details, note=str(latency))

    def _arriving(
        self, recording: Recording, stopped: Callable[[], bool]
    ) -> Iterator[Float32[np.ndarray, " _"]]:
        """The sound of a recording, or of standard input."""
        rate = self.task.settings.rate
        if isinstance(recording, Part) and recording.path == STANDARD_INPUT:
            return piped_sound(standard_input(), rate, self.rate, stopped)
        if self.rate is not None:
            raise GlassformerError(
                f"{recording}: --rate is that of raw sound on standard input; leave it out"
            )
        return self.blocks(recording)

    def blocks(self, recording: Recording) -> Iterator[Float32[np.ndarray, " _"]]:
        """The sound of a recording, at the rate of the run."""
        if not isinstance(recording, Part):
            return iter([recording])
        if recording.path == STANDARD_INPUT:
            raise GlassformerError("standard input is read by --stream only; add it, or name files")
        rate, start, end = self.task.settings.rate, recording.start, recording.end
        return read_blocks(recording.path, rate, start=start, end=end)

    def _pieces(self, recording: Recording) -> Iterator[Piece]:
        """The features of a recording, one piece after another."""
        rate, start = self.task.settings.rate, 0.0
        for sound, last in cut_at_pauses(self.blocks(recording), rate, self.longest):
            end = start + len(sound) / rate
            yield Piece(recording, self.task.features(sound), start, end, last)
            start = end

    def _seconds_of(self, recording: Recording) -> float:
        if isinstance(recording, Part):
            end = recording.end or _length(recording.path)
            return end - recording.start
        return len(recording) / self.task.settings.rate

    @property
    def has_times(self) -> bool:
        """Only CTC tells when words are spoken."""
        return bool(self.task.settings.ctc_weight)

    def cues(self, words: Sequence[Spoken]) -> list[Spoken]:
        return list(cues(words, self._between))

    def subtitles(self, words: Sequence[Spoken], form: str) -> str:
        return subtitles(words, form=form, between=self._between)

    @property
    def _times(self) -> bool:
        """Whether anything needs to know when words are spoken."""
        drawn = self.picture is not None and self.has_times
        return self.align or bool(self.subtitle_files) or drawn

    @property
    def longest(self) -> float:
        """Seconds of a recording that are read at once."""
        settings = self.task.settings
        return settings.max_piece or settings.max_seconds

    def _prediction(self, found: list[tuple[float, Written]]) -> Prediction:
        """The texts of a recording as one; each with when its piece begins."""
        written = [one for _, one in found]
        text = self._between.join(one.text for one in written if one.text)
        tokens = sum(len(one.tokens) + 1 for one in written)
        score = sum(one.score for one in written)
        mean = float(np.exp(min(0.0, score) / max(1, tokens)))
        prediction = self._complete(text, mean, list(self._words(found)))
        details: dict[str, Any] = {"probability": float(np.exp(min(0.0, score)))}
        details |= {"token_mean": mean, **prediction.details}
        prediction = replace(prediction, details=details)
        if len(found) == 1 and (reliability := self.reliability) is not None:
            alike = reliability.of(score)
            details["validation"] = alike.as_values()
            sentence = alike.sentence()
            prediction = replace(prediction, confidence=alike.share, evidence=sentence)
        if self.alternatives and len(found) == 1:
            others = next_best(self.searcher, written[0], self.alternatives)
            lines = [f"  or {other['text']}\t{other['probability']:.3f}" for other in others]
            details["alternatives"] = others
            prediction = replace(prediction, below=[*lines, *prediction.below])
        if self.picture is None or len(found) == 1:
            return prediction
        note = f"is long: the picture shows its first {found[1][0]:.1f} seconds"
        return replace(prediction, note=note)

    @property
    def reliability(self) -> Reliability | None:
        """What validation rows say of transcripts by the search of the run; nothing by another."""
        own, used = self.task.searcher, self.searcher
        if self.task.reliability is None:
            return None
        same = used.decode.method == own.decode.method and used.fusion is own.fusion
        return self.task.reliability if same else None

    def _complete(self, text: str, confidence: float, words: list[Spoken]) -> Prediction:
        """The prediction, with what was asked for besides."""
        for form, path in self.subtitle_files.items():
            write_subtitles(words, path, form=form, between=self._between)
        if not self.align:
            return Prediction(text, confidence, {})
        details = [{"word": word.text, "start": word.start, "end": word.end} for word in words]
        lines = [f"{word.start:.2f}\t{word.end:.2f}\t{word.text}" for word in words]
        return Prediction(text, confidence, {"words": details}, below=lines, explanation=words)

    @property
    def _between(self) -> str:
        """What stands between words."""
        return " " if self.task.settings.measure == "words" else ""

    def _words(self, found: list[tuple[float, Written]]) -> Iterator[Spoken]:
        """Each word, and when it is spoken, in seconds."""
        vector = self.task.factor / FRAMES_A_SECOND
        for begins, one in found:
            for word in one.words:
                start, end = (round(begins + at * vector, 3) for at in (word.start, word.end))
                yield Spoken(word.text, start, end)


@lru_cache(maxsize=1)  # without a header that tells it, the whole file is decoded
def _length(path: Path) -> float:
    """Seconds of a recording."""
    return sound_info(path).seconds
