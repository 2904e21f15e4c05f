"""Text as it is generated: written as soon as it cannot change any more."""

from collections.abc import Sequence

from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import cut_at_stop
from glassformer.tasks.served import TextStream

LOST = "\ufffd"  # a character of which some bytes are still to come


class Streamed(TextStream):
    """The text of a single branch, token by token.

    What may be the beginning of a stop text, or of a character, is held back.

    Attributes:
        text: What has been written.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self.tokenizer, self.stops = tokenizer, stops
        self.tokens: list[int] = []
        self.text = ""

    def add(self, token: int) -> str:
        """What can be written after the newest token; -1 for none."""
        if token in (-1, Tokenizer.end):
            return ""
        self.tokens.append(token)
        text = self.tokenizer.decode(self.tokens).rstrip(LOST)
        settled = cut_at_stop(text, self.stops)
        if settled == text:
            settled = text[: len(text) - self._undecided(text)]
        piece = settled[len(self.text) :]
        self.text += piece
        return piece

    def _undecided(self, text: str) -> int:
        """How many characters at the end may begin a stop text."""
        lengths = (
            length
            for stop in self.stops
            for length in range(1, len(stop))
            if text.endswith(stop[:length])
        )
        return max(lengths, default=0)
