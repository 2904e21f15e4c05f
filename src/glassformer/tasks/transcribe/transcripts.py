"""Transcripts: normalised texts, and their tokens.

Normalisation is part of a run's settings: what is trained on, what is written and what answers are
compared with are normalised alike.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from glassformer.config import TokenizerConfig, require
from glassformer.data.samples import Samples
from glassformer.data.text.subwords import Words
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.metrics.sacre import tokenization_for
from glassformer.tasks.shared.text import refuse_other_tokens, trained

MANY_CHARACTERS = 2_000_000  # of transcripts, about 40 hours: enough to learn subwords from
MOST_CHARACTERS = 20_000  # of a script
FEW_WORDS, OFTEN = 100, 20  # a lexicon so small, with each word heard so often, is complete
LOOKED_AT = 2000  # transcripts by which the measure is chosen
SPACED = "13a"  # how sacreBLEU calls scripts with spaces between words
APOSTROPHES = "'’"


@dataclass(frozen=True, slots=True)
class Normaliser:
    """How transcripts are normalised.

    >>> Normaliser(lowercase=True, punctuation=False)(" “Don’t,” she said -- TWICE.")
    "don't she said twice"
    """

    lowercase: bool
    punctuation: bool

    def __call__(self, text: str) -> str:
        text = unicodedata.normalize("NFKC", text)
        text = text.lower() if self.lowercase else text
        text = text if self.punctuation else without_punctuation(text)
        return " ".join(text.split())


def without_punctuation(text: str) -> str:
    """The text without punctuation, but with apostrophes inside words."""
    kept = []
    for at, character in enumerate(text):
        inside = text[at - 1 : at].isalnum() and text[at + 1 : at + 2].isalnum()
        if character in APOSTROPHES and inside:
            kept.append("'")
        else:
            kept.append(" " if unicodedata.category(character).startswith("P") else character)
    return "".join(kept)


def learn_tokens(
    config: TokenizerConfig, samples: Samples, normalise: Normaliser, origin: Path | None
) -> Tokenizer:
    """The tokens of another run, or tokens learned from the training split."""
    if origin is not None:
        tokenizer = Tokenizer.load(origin / "tokenizer.json")
        refuse_other_tokens(origin, "data.tokenizer", config, tokenizer)
        return tokenizer
    require(
        config.kind != "words" or not normalise.punctuation,
        "data.tokenizer.kind = words joins words by blanks, so punctuation is lost; leave out "
        "task.punctuation, or choose characters or bpe",
    )
    if config.kind == "auto":
        kind = kind_for(map(normalise, samples.values("text", "train")))
        size = config.vocabulary if kind == "bpe" else MOST_CHARACTERS
        config = replace(config, kind=kind, vocabulary=size)
    return trained(config, map(normalise, samples.values("text", "train")))


def kind_for(texts: Iterable[str]) -> str:
    """A lexicon of words if there are few, subwords if there is enough to learn them from.

    >>> kind_for(["yes", "no"] * 50), kind_for(["well, yes", "no"] * 50), kind_for(["maybe"])
    ('words', 'characters', 'characters')
    """
    words, characters = Counter[str](), 0
    for text in texts:
        words.update(text.split())
        characters += len(text)
    if characters >= MANY_CHARACTERS:
        return "bpe"
    few = len(words) <= FEW_WORDS and min(words.values(), default=0) >= OFTEN
    return "words" if few and all(map(Words.is_one_word, words)) else "characters"


def measure_for(texts: Iterable[str]) -> str:
    """Whether errors are counted in words or in characters.

    >>> measure_for(["good morning"]), measure_for(["早上好"])
    ('words', 'characters')
    """
    some = [[text] for text in islice(texts, LOOKED_AT)]
    return "words" if tokenization_for(some) == SPACED else "characters"


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a transcript, and the tokens that spell it."""

    text: str
    tokens: tuple[int, ...]


def words_of(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[Word]:
    """The words that tokens spell; a token's number is its place among them."""
    found: dict[int, list[int]] = {}
    for place, word in enumerate(tokenizer.word_of(list(tokens)).tolist()):
        found.setdefault(word, []).append(place)
    words = []
    for places in found.values():
        text = tokenizer.decode([tokens[place] for place in places]).strip()
        spelt = [place for place in places if tokenizer.decode([tokens[place]]).strip()]
        if text and spelt:
            words.append(Word(text, tuple(spelt)))
    return words
