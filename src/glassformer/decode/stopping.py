"""Texts at which writing stops, however they fall into tokens."""

from collections.abc import Callable, Sequence

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.request import Request

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

    def found(self, tokens: Sequence[int]) -> bool:
        """Whether the last of these tokens completed one of the texts."""
        tail = self.text_of(tokens[-self.window :])
        return any(text in tail for text in self.texts)


def stops_of(request: Request, config: DecodeConfig) -> Stops | None:
    """The texts to stop at, if there are any."""
    if request.text is None or not config.stop:
        return None
    return Stops(config.stop, request.text)


def before_stop(text: str, stops: Sequence[str]) -> str:
    """The text up to the first of the texts to stop at.

    >>> before_stop("one. two! three", ["!", "."])
    'one'
    """
    places = [place for place in map(text.find, stops) if place >= 0]
    return text[: min(places, default=len(text))]
