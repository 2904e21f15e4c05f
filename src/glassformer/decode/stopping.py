"""Texts at which writing stops, however they fall into tokens."""

from collections.abc import Callable, Sequence

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.automaton import Words
from glassformer.decode.request import Request, Tokens

SLACK = 8  # tokens that say nothing by themselves, such as marks of case


class Stops:
    """Looks for the texts to stop at in the last tokens of a path.

    Args:
        texts: Where to stop.
        text_of: From tokens to text.
    """

    def __init__(self, texts: Sequence[str], text_of: Callable[[Sequence[int]], str]) -> None:
        self.texts, self.text_of = texts, text_of
        # A token holds at least a byte of the text, or says nothing by itself.
        self.window = max(len(text.encode()) for text in texts) + SLACK

    def found(self, tokens: Tokens, words: Words | None = None) -> bool:
        """Whether the last of these tokens completed one of the texts, behind all of the words."""
        complete = 0 if words is None else words.complete_at(tokens)
        if complete is None:
            return False
        first = max(0, len(tokens) - self.window)
        tail = self.text_of(tokens[first:])
        behind = len(self.text_of(tokens[first:complete])) if complete > first else 0
        return any(tail.find(text, behind) >= 0 for text in self.texts)


def stops_of(request: Request, config: DecodeConfig) -> Stops | None:
    """The texts to stop at, if there are any."""
    if request.text is None or not config.stop:
        return None
    return Stops(config.stop, request.text)


def before_stop(text: str, stops: Sequence[str], behind: int = 0) -> str:
    """The text up to the first of the texts to stop at that stands behind so many characters.

    >>> before_stop("one. two! three", ["!", "."]), before_stop("one. two! three", ["!", "."], 6)
    ('one', 'one. two')
    """
    places = [place for stop in stops if (place := text.find(stop, behind)) >= 0]
    return text[: min(places, default=len(text))]
