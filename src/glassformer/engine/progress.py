"""What a step of the engine reports."""

from typing import NamedTuple

from glassformer.decode.paths import Hypothesis
from glassformer.engine.generation import Alternatives


class Progress(NamedTuple):
    """A token that was just chosen, or a search that has ended.

    Attributes:
        number: Of the request.
        token: The token; -1 if none was left to choose, and for a search.
        finished: Whether it was the last.
        answer: The whole answer, if it was; None if the request got stuck.
        score, alternatives: The token's log-probability, and the likeliest tokens.
        others: The next best answers of a search.
        error: Why a search could not begin.
    """

    number: int
    token: int
    finished: bool
    answer: Hypothesis | None
    score: float = 0.0
    alternatives: Alternatives = ()
    others: tuple[Hypothesis, ...] = ()
    error: Exception | None = None
