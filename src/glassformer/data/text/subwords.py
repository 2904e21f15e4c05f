"""Words, BPE and unigram pieces, learned and looked up by the `tokenizers` library.

BPE (Sennrich et al., 2016) and unigram (Kudo, 2018) work on the bytes of UTF-8, written with 256
visible characters as GPT-2 does, so that any text comes back exactly, white space included. Texts
are first split into words; no piece crosses a word boundary.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer as Library, models, pre_tokenizers, trainers

from glassformer.data.text.coders import EVERY_BYTE, SPECIAL_TOKENS, SPECIALS, Coder, room_for

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
LETTERS = rf"[[\p{{L}}\p{{M}}\p{{N}}]&&[^{UNSPACED}]]+"
WORD = rf"[{UNSPACED}]\p{{M}}*|{LETTERS}(?:['’]{LETTERS})*|[^\s\p{{L}}\p{{M}}\p{{N}}]"
# A blank belongs to what follows it. An apostrophe between letters stays in the word.
CUT = (
    r" ?[\p{L}\p{M}]+(?:['’][\p{L}\p{M}]+)*| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+"
    r"|\s+(?!\S)|\s+"
)
LONGEST_WORD = 1000  # characters; the library's training time grows with their square
MAY_BE_LONG = re.compile(rf"[^ \n]{{{LONGEST_WORD + 1}}}|\s{{{LONGEST_WORD + 1}}}")
LEAST_COUNT = 2  # words seen once are unknown, so that <unknown> is trained
BYTES_AS_CHARACTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
QUIETLY: dict[str, Any] = {"show_progress": False, "special_tokens": list(SPECIALS)}
SCORE_DIGITS = 3
UNSCORED = 0.03  # the library's made-up scores are at most this far above the lowest


class FromLibrary(Coder):
    """Tokens that the library learns and looks up; subclasses differ in the training."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.tokens = SPECIAL_TOKENS + [self.bytes_of(name) for name in _names(library)]

    @staticmethod
    def bytes_of(name: str) -> bytes:
        """The bytes of a token, from the library's name for it, which writes them visibly."""
        return bytes(BYTE_OF[character] for character in name)

    @classmethod
    def from_plain(cls, value: Any) -> "Coder":
        return cls(Library.from_str(json.dumps(value)))

    def plain(self) -> Any:
        return json.loads(self.library.to_str())

    def encode(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        encodings = self.library.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]

    def spans(self, text: str) -> NDArray[np.int64]:
        offsets = self.library.encode(text, add_special_tokens=False).offsets
        return np.array(offsets, dtype=np.int64).reshape(-1, 2)


class Words(FromLibrary):
    """Full words and single signs; rare ones are unknown. White space is lost."""

    @staticmethod
    def bytes_of(name: str) -> bytes:
        return name.encode()

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int) -> "Coder":
        room_for(len(SPECIALS) + 1, vocabulary, "words")
        library = Library(models.WordLevel(unk_token=SPECIALS[0]))
        library.pre_tokenizer = _at_words()
        trainer = trainers.WordLevelTrainer(
            vocab_size=vocabulary, min_frequency=LEAST_COUNT, **QUIETLY
        )
        library.train_from_iterator(texts, trainer)
        return cls(_without_specials(library))

    @staticmethod
    def is_one_word(word: str) -> bool:
        """Whether it is one token, not split at a sign."""
        return [piece for piece, _ in _at_words().pre_tokenize_str(word)] == [word]

    def decode(self, ids: list[int]) -> str:
        return b" ".join([self.tokens[token] for token in ids if self.tokens[token]]).decode()


def _at_words() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(WORD), "removed", invert=True)


class Bpe(FromLibrary):
    """The most frequent pairs, merged repeatedly, starting from single bytes. Lossless."""

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int) -> "Coder":
        room_for(EVERY_BYTE, vocabulary, "bpe tokens")
        library = _on_bytes(models.BPE())
        trainer = trainers.BpeTrainer(
            vocab_size=vocabulary,
            min_frequency=LEAST_COUNT,
            initial_alphabet=BYTES_AS_CHARACTERS,
            **QUIETLY,
        )
        library.train_from_iterator(in_short_words(texts), trainer)
        return cls(_without_specials(library))

    def cut(self, text: str) -> list[str]:
        """The words of a text, their bytes written as `symbols`; no merge crosses them."""
        return [word for word, _ in self.library.pre_tokenizer.pre_tokenize_str(text)]

    def symbols(self) -> dict[str, int]:
        """The token of each single byte."""
        numbers = self.library.get_vocab()
        return {name: numbers[name] for name in BYTES_AS_CHARACTERS}

    def merges(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Pairs of tokens that may be merged -> the rank of the merge, and the resulting token."""
        numbers = self.library.get_vocab()
        pairs = self.plain()["model"]["merges"]
        return {
            (numbers[left], numbers[right]): (turn, numbers[left + right])
            for turn, (left, right) in enumerate(pairs)
        }


class Unigram(FromLibrary):
    """Pieces that maximise the likelihood of the texts, with their probabilities. Lossless."""

    @classmethod
    def train(cls, texts: Iterable[str], vocabulary: int) -> "Coder":
        room_for(EVERY_BYTE, vocabulary, "unigram tokens")
        library = _on_bytes(models.Unigram())
        trainer = trainers.UnigramTrainer(
            vocab_size=vocabulary,
            initial_alphabet=BYTES_AS_CHARACTERS,
            unk_token=SPECIALS[0],
            **QUIETLY,
        )
        library.train_from_iterator(in_short_words(texts), trainer)
        learned = dict(json.loads(library.to_str())["model"]["vocab"][len(SPECIALS) :])
        return cls(_on_bytes(models.Unigram(_normalised(learned, vocabulary), unk_id=0)))


def _normalised(learned: dict[str, float], vocabulary: int) -> list[tuple[str, float]]:
    """The same pieces and scores for the same texts.

    The library sums in an order that varies from run to run, gives single bytes without a score one
    a little above the lowest, in random order, and may return more pieces than requested.
    """
    lowest = min(learned.values())
    scores = {
        piece: lowest if len(piece) == 1 and score < lowest + UNSCORED else score
        for piece, score in learned.items()
    }
    scores = {piece: round(score, SCORE_DIGITS) for piece, score in scores.items()}
    ranked = sorted(scores, key=lambda piece: (len(piece) > 1, -scores[piece], piece))
    kept = sorted(ranked[: vocabulary - len(SPECIALS)], key=lambda piece: (-scores[piece], piece))
    specials = [(name, round(lowest, SCORE_DIGITS)) for name in SPECIALS]
    return specials + [(piece, scores[piece]) for piece in kept]


def _on_bytes(model: models.Model) -> Library:
    library = Library(model)
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [_at_cuts(), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    return library


def _at_cuts() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Split(Regex(CUT), "isolated")


def in_short_words(texts: Iterable[str]) -> Iterator[str]:
    """The same texts, split inside words that are too long to train on."""
    for text in texts:
        start = 0
        words = _at_cuts().pre_tokenize_str(text) if MAY_BE_LONG.search(text) else ()
        for _, (begin, end) in words:
            for cut in range(begin + LONGEST_WORD, end, LONGEST_WORD):
                yield text[start:cut]
                start = cut
        yield text[start:]


def _without_specials(trained: Library) -> Library:
    """The same tokenizer, but one that does not look for specials in a text."""
    library = Library(trained.model)
    library.pre_tokenizer = trained.pre_tokenizer
    return library


def _names(library: Library) -> list[str]:
    """The library's names of the tokens after the specials, in order of id."""
    numbers = library.get_vocab()
    names = sorted(numbers, key=numbers.__getitem__)
    if sorted(numbers.values()) != list(range(len(numbers))) or names[:4] != list(SPECIALS):
        raise ValueError(f"its vocabulary does not start with {', '.join(SPECIALS)}")
    return names[len(SPECIALS) :]


def _byte_of_each_character() -> dict[str, int]:
    """GPT-2's alphabet: a visible character stands for its own byte, the others follow U+0100."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in visible]
    return {chr(byte): byte for byte in visible} | {
        chr(256 + place): byte for place, byte in enumerate(hidden)
    }


BYTE_OF = _byte_of_each_character()
