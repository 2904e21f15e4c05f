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
        answer: The whole answer, if it was and there is one.
        score, alternatives: The token's log-probability, and the likeliest tokens.
        others: The next best answers of a search.
        error: Why there is no answer.
    """

    number: int
    token: int
    finished: bool
    answer: Hypothesis | None
    score: float = 0.0
    alternatives: Alternatives = ()
    others: tuple[Hypothesis, ...] = ()
    error: Exception | None = None

    def best(self) -> Hypothesis:
        """The answer of a request that is finished; raises the error of one without."""
        if self.answer is None:
            raise self.error or ValueError("the request is not finished")
        return self.answer


def failed(number: int, error: Exception) -> Progress:
    """The end of a request without an answer."""
    return Progress(number, -1, finished=True, answer=None, error=error)
