"""Writing down a stream while it arrives, by the likeliest path of CTC.

A path never changes its mind: a token is certain as soon as its chunk is there. A word is complete
when the next one begins, or after a pause; at once, where tokens are words.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.data.audio.features import SHIFT, WINDOW, frame_count
from glassformer.data.audio.reading import Sound
from glassformer.models.incremental.listening import Listener
from glassformer.models.transcriber import Transcriber
from glassformer.tasks.predictor import Partial
from glassformer.tasks.served import Spoken
from glassformer.tasks.shared.sound import FRAMES_A_SECOND
from glassformer.tasks.transcribe.hearing import chunk_mask
from glassformer.tasks.transcribe.sounds import BLANK, writable
from glassformer.tasks.transcribe.task import TranscribeTask
from glassformer.tasks.transcribe.transcripts import words_of

PAUSE = 0.8  # seconds without a token, after which a word is complete


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute with one thread: a chunk is too little work to be shared between several."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, slots=True)
class Latency:
    """How long it takes from a sound to its word.

    Attributes:
        look_ahead: Seconds of sound that a chunk needs: its own, and what follows it.
        computing: Seconds in which each chunk was computed.
        heard: Seconds of sound.
    """

    look_ahead: float
    computing: list[float]
    heard: float

    def as_values(self) -> dict[str, float]:
        """Plain values, for JSON."""
        median, p95 = np.quantile(self.computing or [0.0], [0.5, 0.95]).round(5).tolist()
        factor = sum(self.computing) / max(self.heard, 1e-9)
        found = {"look_ahead": self.look_ahead, "median": median, "p95": p95}
        return found | {"real_time_factor": round(factor, 5)}

    def __str__(self) -> str:
        values = self.as_values()
        return (
            f"was heard with a look-ahead of {self.look_ahead:.2f} s; each chunk was computed in "
            f"{1000 * values['median']:.0f} ms (median) or {1000 * values['p95']:.0f} ms (p95), "
            f"real-time factor {values['real_time_factor']:.3f}"
        )


class Path:
    """The likeliest path so far: the tokens of words that are not complete yet.

    Attributes:
        at: How many vectors there were.
        score: Their log-probability.
        count: How many tokens there were, complete words included.
    """

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.spans: list[tuple[int, int]] = []
        self.at, self.score, self.count, self.last = 0, 0.0, 0, BLANK

    def extend(self, log_probs: Float[Tensor, "T V"]) -> None:
        """Go on through more vectors."""
        best, tokens = log_probs.max(-1)
        self.score += float(best.sum())
        for token in tokens.tolist():
            if token not in (BLANK, self.last):
                self.tokens.append(token)
                self.spans.append((self.at, self.at + 1))
                self.count += 1
            elif token != BLANK and self.spans:
                self.spans[-1] = (self.spans[-1][0], self.at + 1)
            self.last, self.at = token, self.at + 1

    def cut(self, end: int) -> tuple[list[int], list[tuple[int, int]]]:
        """The first tokens and their vectors, which are removed."""
        tokens, spans = self.tokens[:end], self.spans[:end]
        self.tokens, self.spans = self.tokens[end:], self.spans[end:]
        return tokens, spans


class LiveTranscript:
    """What a stream says, and when.

    Args:
        model: Trained for streams.
    """

    def __init__(self, task: TranscribeTask, model: Transcriber) -> None:
        self.task, self.rate = task, task.settings.rate
        mask = chunk_mask(task.settings.stream, task.factor)
        self.listener, self.path = Listener(model, mask), Path()
        self.sound: Sound = np.empty(0, dtype=np.float32)  # that is not in frames yet
        self.heard, self.busy, self.computing = 0, 0.0, list[float]()
        self.text, self.words, self.spaced = "", list[Spoken](), False

    @property
    def latency(self) -> Latency:
        look_ahead = self.listener.delay / FRAMES_A_SECOND + (WINDOW - SHIFT) / 1000
        return Latency(round(look_ahead, 3), self.computing, self.heard / self.rate)

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of the tokens and the end."""
        return float(np.exp(self.path.score / (self.path.count + 1)))

    def hear(self, sound: Sound, *, last: bool = False) -> Iterator[tuple[str, list[Spoken]]]:
        """What follows the text so far, and the words in it, as soon as they are complete."""
        step = self.listener.mask.size * self.task.factor * (self.rate * SHIFT // 1000)  # a chunk
        for start in range(0, max(1, len(sound)), step):
            some = sound[start : start + step]
            yield from self._hear(some, last=last and start + step >= len(sound))

    def _hear(self, sound: Sound, *, last: bool) -> Iterator[tuple[str, list[Spoken]]]:
        began = time.perf_counter()
        frames = self._frames(sound)
        for log_probs in self.listener.hear(frames, last=last):
            self.path.extend(writable(log_probs))
            self.computing.append(self.busy + time.perf_counter() - began)
            self.busy, began = 0.0, time.perf_counter()
        self.busy += time.perf_counter() - began
        text, words = self._complete(last)
        if text:
            yield text, words

    def _frames(self, sound: Sound) -> Float[Tensor, "F M"]:
        """The features of what can be framed by now; the rest waits for more."""
        self.heard += len(sound)
        self.sound = np.concatenate([self.sound, sound])
        count = frame_count(len(self.sound), self.rate)
        if not count:
            return torch.zeros(0, self.task.bins)
        features = self.task.features(self.sound)
        self.sound = self.sound[count * (self.rate * SHIFT // 1000) :]
        return torch.from_numpy(features.astype(np.float32))

    def _complete(self, last: bool) -> tuple[str, list[Spoken]]:
        """What can be written by now."""
        path, tokenizer, vector = self.path, self.task.tokenizer, self.task.factor / FRAMES_A_SECOND
        if not path.tokens:
            return "", []
        end, paused = len(path.tokens), (path.at - path.spans[-1][1]) * vector >= PAUSE
        if not (last or paused or tokenizer.kind == "words"):
            numbers = tokenizer.word_of(path.tokens)
            end = int(np.argmax(numbers == numbers[-1]))  # where the last word begins
        tokens, spans = path.cut(end)
        text = self._following(tokenizer.decode(tokens))
        self.text += text
        self.spaced |= paused and self.task.settings.measure == "words"
        words = [
            Spoken(
                word.text,
                round(spans[word.tokens[0]][0] * vector, 3),
                round(spans[word.tokens[-1]][1] * vector, 3),
            )
            for word in words_of(tokenizer, tokens)
        ]
        self.words += words
        return text, words

    def _following(self, text: str) -> str:
        """The text as it follows what was written, with one space where there are several."""
        spaced = self.spaced or text[:1].isspace() or self.task.tokenizer.kind == "words"
        written = " ".join(text.split())
        self.spaced = text[-1:].isspace() if written else spaced
        return f" {written}" if written and spaced and self.text else written


def as_partial(heard: tuple[str, list[Spoken]]) -> Partial:
    """What was heard last, with its times."""
    text, words = heard
    times = {"start": words[0].start, "end": words[-1].end} if words else {}
    return Partial(text=text, details=times)
