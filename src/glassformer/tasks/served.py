"""What a predictor can do beside predicting, which a server offers in a form of its own.

    TokenWriter     continues a text token by token, through an engine
    SourceWriter    answers what an encoder reads, by a decoder, through an engine
    Embedder        turns texts into vectors
    SpeechWriter    writes down speech, with the times of words if it knows them
    ImageReader     reads pictures, as pixels
    NameReader      takes names, such as those of users

A predictor of texts or recordings that has none of them is still served: its inputs in, its
predictions out.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import nn

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.paths import Hypothesis
from glassformer.engine import GenerationRequest, SearchRequest
from glassformer.tasks.predictor import Prediction

TINY = 1e-12  # the least length of a vector


class TextStream(ABC):
    """A text as it is written."""

    @abstractmethod
    def add(self, token: int) -> str:
        """What can be written after the newest token, since it cannot change any more."""


class TokenWriter(ABC):
    """Continues texts; each continuation is one request to an engine.

    Attributes:
        decode: How, unless settings say otherwise.
    """

    decode: DecodeConfig

    @abstractmethod
    def with_decoding(self, settings: Mapping[str, Any]) -> "TokenWriter":
        """The same with other decoding settings, nested: `{"sample": {"top_p": 0.9}}`."""

    @abstractmethod
    def request(self, text: str) -> GenerationRequest:
        """What the engine is asked for."""

    @abstractmethod
    def stream(self) -> TextStream:
        """The text of one continuation, as it is written."""

    @abstractmethod
    def continuation(self, text: str, found: Hypothesis) -> Prediction:
        """A finished continuation, with `continuation` and `tokens` in its details."""

    @abstractmethod
    def piece(self, token: int) -> str:
        """A token as it is shown."""


@dataclass(frozen=True, slots=True)
class EngineWork:
    """How an engine answers one input.

    Attributes:
        requests: One for each text to write; none for an input that needs no model.
        finish: The prediction, given the answers to each request, best first.
    """

    requests: Sequence[GenerationRequest | SearchRequest]
    finish: Callable[[Sequence[Sequence[Hypothesis]]], Prediction]


class SourceWriter(ABC):
    """Answers inputs that an encoder reads; each text of an answer is one request to an engine."""

    @property
    def uses_decoder(self) -> bool:
        """Whether a decoder writes the answers, token by token."""
        return True

    @abstractmethod
    def engine_work(self, model: nn.Module, given: Any) -> EngineWork:
        """How an engine answers this input, if it `uses_decoder`."""


class Embedder(ABC):
    """Turns texts into vectors: those that its model works with before it answers."""

    @abstractmethod
    def embed(self, model: nn.Module, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """A vector for each text."""

    def unit_vectors(self, model: nn.Module, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """A vector of length 1 for each text, whose products are cosines."""
        vectors = self.embed(model, texts)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return (vectors / np.maximum(lengths, TINY)).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Spoken:
    """A word, or several, and when they are spoken, in seconds."""

    text: str
    start: float
    end: float


class SpeechWriter(ABC):
    """Writes down speech. With the option `align`, its predictions are explained by `Spoken`."""

    @property
    @abstractmethod
    def has_times(self) -> bool:
        """Whether it knows when words are spoken."""

    @abstractmethod
    def cues(self, words: Sequence[Spoken]) -> list[Spoken]:
        """Words that are shown together."""

    @abstractmethod
    def subtitles(self, words: Sequence[Spoken], form: str) -> str:
        """The words as subtitles, `srt` or `vtt`."""


class ImageReader:
    """Predicts from images: arrays of 8-bit pixels, of height, width and 1 or 3 channels."""


class NameReader:
    """Predicts from names that it knows from training; they never name a file."""
