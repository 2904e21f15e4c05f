"""Text to token ids and back, for every kind of tokens, stored in one file."""

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glassformer.data.jagged import Jagged
from glassformer.data.text.chinese import simplified
from glassformer.data.text.coders import SPECIALS, Bytes, Characters, Coder, chunked
from glassformer.data.text.subwords import Bpe, Unigram, Words
from glassformer.data.text.words import edges, number_words
from glassformer.errors import GlassformerError, unknown
from glassformer.files import write_text

FORMAT = "glassformer tokenizer 1"
UNUSED_CHARACTER = "\U0010fffd"  # a character that no text has


class Tokenizer:
    """Turns texts into token ids. The specials come first and never result from a text.

    >>> tokenizer = Tokenizer.train("characters", ["what a film"], vocabulary=100)
    >>> [ids] = tokenizer.encode(["a film"])
    >>> tokenizer.pieces(ids), tokenizer.decode(ids), tokenizer.word_of(ids).tolist()
    (['a', ' ', 'f', 'i', 'l', 'm'], 'a film', [0, 1, 1, 1, 1, 1])
    >>> tokenizer.size
    13

    Args:
        kind: One of `TOKENIZERS`.
        coder: The trained coder.
        lowercase: Whether texts are lowercased first.
        simplified: Whether traditional Chinese is converted to simplified first.
    """

    unknown, mask, start, end = range(len(SPECIALS))

    def __init__(
        self, kind: str, coder: Coder, *, lowercase: bool = False, simplified: bool = False
    ) -> None:
        self.kind, self.coder = kind, coder
        self.lowercase, self.simplified = lowercase, simplified

    @classmethod
    def train(
        cls,
        kind: str,
        texts: Iterable[str],
        *,
        vocabulary: int,
        lowercase: bool = False,
        simplified: bool = False,
    ) -> "Tokenizer":
        """Learn at most `vocabulary` tokens, including specials, in one pass over the texts.

        The same texts give the same tokenizer, on any number of threads.
        """
        coder = _coder_of(kind)
        cleaned = (_clean(coder, some, lowercase, simplified) for some in chunked(texts))
        learned = coder.train(_something(chain.from_iterable(cleaned)), vocabulary)
        return cls(kind, learned, lowercase=lowercase, simplified=simplified)

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        """The token ids of each text, without specials."""
        if isinstance(texts, str):
            raise ValueError("encode takes a list of texts, got one text; put it into a list")
        return self.coder.encode(_clean(self.coder, texts, self.lowercase, self.simplified))

    def clean(self, text: str) -> str:
        """The text as it is tokenised: lowercased, simplified, without lone surrogates."""
        return _clean(self.coder, [text], self.lowercase, self.simplified)[0]

    def spans(self, text: str) -> NDArray[np.int64]:
        """Where each token of a cleaned text begins and ends in it, in characters: (tokens, 2)."""
        return self.coder.spans(text)

    def decode(self, ids: ArrayLike) -> str:
        """The text of these tokens. Specials are dropped, but an unknown token becomes U+FFFD.

        Words are joined by single blanks; all other kinds reproduce the text exactly.
        """
        return self.coder.decode(self._checked(ids).tolist())

    def pieces(self, ids: ArrayLike) -> list[str]:
        r"""Each token in readable form: specials by name, part of a character as \xe4."""
        return [self._readable[token] for token in self._checked(ids).tolist()]

    def word_of(self, ids: ArrayLike) -> NDArray[np.int64]:
        """The index of the word of each token; a special is a word of its own."""
        tokens = self._checked(ids)
        return self.words_of(Jagged(tokens, np.array([len(tokens)])))

    def words_of(self, rows: Jagged) -> NDArray[np.int64]:
        """The index of the word of each token, counted through all rows; none goes over an end."""
        if self.kind == "words":
            return np.arange(len(rows.values))
        first, last = self._edges[:, self._checked(rows.values)]
        starts = np.zeros(len(first), dtype=bool)
        starts[rows.starts[rows.lengths > 0]] = True
        return number_words(first, last, starts)

    @property
    def size(self) -> int:
        """The vocabulary size, including specials."""
        return len(self.coder.tokens)

    def to_json(self) -> str:
        """The tokenizer as JSON."""
        folds = {"lowercase": self.lowercase, "simplified": self.simplified}
        facts = {"format": FORMAT, "kind": self.kind, **folds, "coder": self.coder.plain()}
        return json.dumps(facts, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Tokenizer":
        """Read what `to_json` wrote."""
        facts = json.loads(text)
        if not isinstance(facts, dict) or facts.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        coder = _coder_of(facts["kind"]).from_plain(facts["coder"])
        folds = {name: bool(facts.get(name, False)) for name in ("lowercase", "simplified")}
        tokenizer = cls(facts["kind"], coder, **folds)
        tokenizer.encode([UNUSED_CHARACTER])  # some errors only show at an unknown character
        return tokenizer

    def save(self, path: str | Path) -> None:
        """Write it to one file, atomically."""
        write_text(self.to_json(), Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read what `save` wrote."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise GlassformerError(
                f"{path}: cannot be read ({error.strerror}); check the path"
            ) from None
        except Exception as error:  # the library raises plain Exception for a file it cannot read
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise GlassformerError(
                f"{path}: not a Glassformer tokenizer ({reason}); "
                f"use the tokenizer.json of a run folder"
            ) from None

    @cached_property
    def telling(self) -> NDArray[np.bool_]:
        """Whether each token says something: one that is unknown, or white space, does not."""
        found = np.array([not piece.isspace() for piece in self._readable])
        found[self.unknown] = False
        return found

    @cached_property
    def learned_characters(self) -> frozenset[str]:
        """The characters of all tokens that were put together in training, without spaces."""
        tokens = (token for token in self.coder.tokens[len(SPECIALS) :] if len(token) > 1)
        pieces = (token.decode("utf-8", "ignore") for token in tokens)
        return frozenset(character for piece in pieces for character in piece if character.strip())

    def strange(self, text: str, ids: ArrayLike) -> NDArray[np.bool_]:
        """Which tokens of a cleaned text stand for something that was not seen in training.

        Byte pairs can spell any text; what was learned are the characters of longer tokens.

        >>> tokenizer = Tokenizer.train("characters", ["what a film"], vocabulary=100)
        >>> tokenizer.strange("a zoo", tokenizer.encode(["a zoo"])[0]).tolist()
        [False, False, True, True, True]
        >>> tokenizer = Tokenizer.train("bpe", ["what a film"] * 2, vocabulary=300)
        >>> tokenizer.strange("a 雪", tokenizer.encode(["a 雪"])[0]).tolist()
        [False, False, True, True, True]
        """
        if self.kind != "bpe" or not self.learned_characters:
            return np.asarray(ids) == self.unknown
        parts = (text[start:end].strip() for start, end in self.spans(text).tolist())
        strange = [bool(part) and self.learned_characters.isdisjoint(part) for part in parts]
        return np.array(strange, dtype=bool)

    @property
    def first_kinds(self) -> NDArray[np.int8]:
        """The kind of each token's first character (`data/text/words.py`)."""
        return self._edges[0]

    @cached_property
    def _readable(self) -> list[str]:
        others = self.coder.tokens[len(SPECIALS) :]
        return [*SPECIALS, *(token.decode("utf-8", "backslashreplace") for token in others)]

    @cached_property
    def _edges(self) -> NDArray[np.int8]:
        unknown_letter = b"x"  # an unknown character is most likely a rare letter
        return edges([unknown_letter, *self.coder.tokens[1:]])

    def _checked(self, ids: ArrayLike) -> NDArray[np.int64]:
        tokens = np.asarray(ids, dtype=np.int64)
        if tokens.ndim != 1 or (len(tokens) and not 0 <= tokens.min() <= tokens.max() < self.size):
            raise ValueError(f"expected a list of ids from 0 to {self.size - 1}, got {ids!r}")
        return tokens


def _coder_of(kind: str) -> type[Coder]:
    if kind not in TOKENIZERS:
        raise GlassformerError(unknown("tokenizer", kind, TOKENIZERS))
    return TOKENIZERS[kind]


def _clean(
    coder: Coder | type[Coder], texts: Sequence[str], lowercase: bool, in_simplified: bool
) -> Sequence[str]:
    texts = coder.sanitise_all(texts)
    texts = list(map(simplified, texts)) if in_simplified else texts
    return [text.lower() for text in texts] if lowercase else texts


def _something(texts: Iterable[str]) -> Iterator[str]:
    """The same texts; refused if all are blank."""
    seen: list[str] = []
    rest = iter(texts)
    for text in rest:
        if text.strip():
            return chain(seen, [text], rest)
        seen.append(text)
    raise GlassformerError(
        f"no text to train a tokenizer on: found {len(seen)} texts, all of them empty; "
        f"check which column holds the text"
    )


TOKENIZERS: dict[str, type[Coder]] = {
    "bytes": Bytes,
    "characters": Characters,
    "words": Words,
    "bpe": Bpe,
    "unigram": Unigram,
}
LOSSLESS = ("bytes", "bpe", "unigram")  # those without unknown tokens
