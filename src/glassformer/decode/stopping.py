"""Stop texts: decoding ends where one of them occurs, however it is split into tokens."""

from collections.abc import Callable, Sequence

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.automaton import RequiredWords
from glassformer.decode.request import Request, Tokens

SLACK = 8  # tokens without text of their own, such as case markers


class Stops:
    """Looks for stop texts in the last tokens of a branch.

    Args:
        texts: The stop texts.
        detokenize: From tokens to text.
    """

    def __init__(self, texts: Sequence[str], detokenize: Callable[[Sequence[int]], str]) -> None:
        self.texts, self.detokenize = texts, detokenize
        # A token holds at least a byte of the text, or no text at all.
        self.window = max(len(text.encode()) for text in texts) + SLACK

    def reached(self, tokens: Tokens, words: RequiredWords | None = None) -> bool:
        """Whether a stop text is complete after all required words."""
        complete = 0 if words is None else words.complete_at(tokens)
        if complete is None:
            return False
        first = max(0, len(tokens) - self.window)
        tail = self.detokenize(tokens[first:])
        start = len(self.detokenize(tokens[first:complete])) if complete > first else 0
        return any(tail.find(text, start) >= 0 for text in self.texts)


def build_stops(request: Request, config: DecodeConfig) -> Stops | None:
    """The stop texts, if there are any."""
    if request.detokenize is None or not config.stop:
        return None
    return Stops(config.stop, request.detokenize)


def cut_at_stop(text: str, stops: Sequence[str], start: int = 0) -> str:
    """The text before the first stop text at or after `start`.

    >>> cut_at_stop("one. two! three", ["!", "."]), cut_at_stop("one. two! three", ["!", "."], 6)
    ('one', 'one. two')
    """
    places = [place for stop in stops if (place := text.find(stop, start)) >= 0]
    return text[: min(places, default=len(text))]
