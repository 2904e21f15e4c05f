"""Stop texts: decoding ends where one of them occurs, however it is split into tokens."""

from collections.abc import Callable, Sequence
from functools import lru_cache

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


class StopSearch:
    """Looks for a stop text in a text that comes one character at a time.

    A character takes constant time on average. Knuth, Morris and Pratt, 1977.

    Attributes:
        matched: How many characters of the stop text are the end of what has come.
    """

    def __init__(self, text: str) -> None:
        self.text, self.matched, self.borders = text, 0, borders_of(text)

    @property
    def is_complete(self) -> bool:
        """Whether what has come ends with the stop text."""
        return self.matched == len(self.text)

    def add(self, character: str) -> int:
        """How much of it is matched after another character."""
        if self.is_complete:
            self.matched = self.borders[self.matched]
        while self.matched and self.text[self.matched] != character:
            self.matched = self.borders[self.matched]
        self.matched += self.text[self.matched] == character
        return self.matched


@lru_cache(64)
def borders_of(text: str) -> tuple[int, ...]:
    """For each beginning of a text: the length of the longest shorter one that it ends with.

    >>> borders_of("aabaa")
    (0, 0, 1, 0, 1, 2)
    """
    borders = [0, 0]
    for character in text[1:]:
        length = borders[-1]
        while length and text[length] != character:
            length = borders[length]
        borders.append(length + (text[length] == character))
    return tuple(borders)


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
