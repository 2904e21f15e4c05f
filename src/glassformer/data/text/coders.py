"""The kinds of tokens a text can fall into, each with its way of learning them and of writing them.

A coder knows what each token stands for (`tokens`, as UTF-8) and turns texts into token numbers;
`Tokenizer` does the rest. The first numbers belong to `SPECIALS`, which no text can spell: no coder
looks for them. To add a kind, write one class here or beside `subwords` and a line in `TOKENIZERS`.
"""

import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glassformer.errors import GlassformerError

SPECIALS = ("<unknown>", "<mask>", "<start>", "<end>")
SPECIAL_TOKENS = ["\ufffd".encode(), b"", b"", b""]  # what they leave in a decoded text
EVERY_BYTE = len(SPECIALS) + 256
SURROGATE = re.compile("[\ud800-\udfff]")


class Coder(ABC):
    """One kind of tokens."""

    tokens: list[bytes]

    @classmethod
    @abstractmethod
    def train(cls, texts: Iterable[str], vocabulary: int) -> "Coder":
        """Learn at most this many tokens, specials counted, from texts without lone surrogates."""

    @classmethod
    @abstractmethod
    def from_plain(cls, value: Any) -> "Coder":
        """The coder that `plain` told about."""

    @abstractmethod
    def plain(self) -> Any:
        """All there is to know, as JSON can hold it."""

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """Token numbers of each text."""

    def decode(self, ids: list[int]) -> str:
        """The text these tokens stand for; bytes that make no character show as U+FFFD."""
        return b"".join([self.tokens[token] for token in ids]).decode("utf-8", "replace")

    @classmethod
    def whole(cls, text: str) -> str:
        """The text as this kind can take it: lone surrogates, left by broken UTF-8, as U+FFFD."""
        try:
            text.encode()
        except UnicodeEncodeError:
            return SURROGATE.sub("\ufffd", text)
        return text


class Bytes(Coder):
    """The 256 bytes of UTF-8. Nothing to learn, nothing lost, lone surrogates included."""

    def __init__(self) -> None:
        self.tokens = SPECIAL_TOKENS + [bytes([byte]) for byte in range(256)]

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int) -> "Coder":
        room_for(EVERY_BYTE, vocabulary, "bytes")
        return cls()

    @classmethod
    def from_plain(cls, value: Any) -> "Coder":
        return cls()

    def plain(self) -> Any:
        return None

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
        return [
            np.frombuffer(line, dtype=np.uint8).astype(np.int32) + len(SPECIALS) for line in encoded
        ]

    def decode(self, ids: list[int]) -> str:
        line = b"".join([self.tokens[token] for token in ids])
        try:
            return line.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:  # not from a text: a model's own invention
            return line.decode("utf-8", "replace")

    @classmethod
    def whole(cls, text: str) -> str:
        return text


class Characters(Coder):
    """The most frequent characters (code points); the others are unknown."""

    def __init__(self, characters: str) -> None:
        self.characters = characters
        self.tokens = SPECIAL_TOKENS + [character.encode() for character in characters]
        points = np.frombuffer(characters.encode("utf-32-le"), dtype=np.uint32)
        self.numbers = np.zeros(0x110000, dtype=np.int32)
        self.numbers[points] = np.arange(len(points)) + len(SPECIALS)

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int) -> "Coder":
        room_for(len(SPECIALS) + 1, vocabulary, "characters")
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text)
        ranked = sorted(counts, key=lambda character: (-counts[character], character))
        return cls("".join(ranked[: vocabulary - len(SPECIALS)]))

    @classmethod
    def from_plain(cls, value: Any) -> "Coder":
        return cls(value)

    def plain(self) -> Any:
        return self.characters

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        return [
            self.numbers[np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)] for text in texts
        ]


def room_for(least: int, vocabulary: int, kind: str) -> None:
    """Refuse a vocabulary that cannot hold what every text needs."""
    if vocabulary < least:
        raise GlassformerError(
            f"a vocabulary of {vocabulary} is too small for {kind}, which need at least {least}; "
            f"raise it, or choose another tokenizer"
        )
