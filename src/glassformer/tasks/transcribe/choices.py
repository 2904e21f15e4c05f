"""The texts that a search finds, and the one that it chooses."""

import math
from dataclasses import dataclass

from glassformer.tasks.transcribe.rescoring import Tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """A text that a search found.

    Attributes:
        ctc, attention: Its log-probabilities given the sound; 0 where it has none.
        language: Its log-probability by the language model, if there is one.
        divisor: What its score is divided by to be compared with others.
    """

    tokens: Tokens
    ctc: float = 0.0
    attention: float = 0.0
    language: float = 0.0
    divisor: float = 1.0

    def score(self, share: float) -> float:
        """Its log-probability given the sound, of which CTC has this share."""
        return share * self.ctc + (1 - share) * self.attention

    def total(self, share: float, weight: float) -> float:
        """What it is ranked by, with a language model of this weight."""
        return (self.score(share) + weight * self.language) / self.divisor


Choices = list[tuple[str, Choice]]  # with their texts


@dataclass(frozen=True, kw_only=True, slots=True)
class Timed:
    """A word, and the vectors during which it is spoken."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """One text of a recording.

    Attributes:
        score: Its log-probability given the sound.
        words: When each word is spoken, if requested and known.
        choices: All texts that were compared.
    """

    text: str
    tokens: Tokens
    score: float
    words: tuple[Timed, ...] = ()
    choices: tuple[Choice, ...] = ()

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of its tokens and its end."""
        return math.exp(min(0.0, self.score) / (len(self.tokens) + 1))
