"""Text as it is generated: written as soon as it cannot change any more."""

import codecs
from collections.abc import Sequence

from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode.stopping import StopSearch
from glassformer.tasks.served import TextStream


class Streamed(TextStream):
    """The text of a single branch, token by token.

    What may be the beginning of a stop text, or of a character, is held back. The time that a token
    takes depends neither on how much was written nor on the length of stop texts.

    Attributes:
        length: How many characters have been written.
    """

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str]) -> None:
        self.tokens = tokenizer.coder.tokens  # no kind that generates has anything between them
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.searches = [StopSearch(text) for text in stops]
        self.held, self.length = "", 0
        self.stopped = False

    def add(self, token: int) -> str:
        """What can be written after the newest token; -1 for none."""
        if self.stopped or token in (-1, Tokenizer.end):
            return ""
        text = self.decoder.decode(self.tokens[token])
        self.held += text
        settled = len(self.held) - self._undecided(text)
        piece, self.held = self.held[:settled], self.held[settled:]
        self.length += len(piece)
        return piece

    def _undecided(self, text: str) -> int:
        """How many characters at the end may belong to a stop text, given the newest of them."""
        for number, character in enumerate(text, 1):
            matched = [search.add(character) for search in self.searches]
            if any(search.is_complete for search in self.searches):
                self.stopped = True
                return max(matched) + len(text) - number
        return max((search.matched for search in self.searches), default=0)
