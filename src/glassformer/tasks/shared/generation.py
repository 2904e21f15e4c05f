"""Generation options: how the answers of one prediction are generated.

A run uses its own decoding settings unless an option overrides them: another search, more answers,
or words that must or must not occur.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from glassformer.config import at_most, build, require
from glassformer.config.decoding import MOST_ANSWERS, DecodeConfig
from glassformer.config.values import fitting, merge_values, plain
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.data.text.words import ALONE, BLANK, DIGIT, INSIDE, LETTER, edges, kind_of
from glassformer.decode import RequiredWords
from glassformer.errors import GlassformerError

Tokens = Sequence[int]

KINDS = {  # of the options
    "decode": dict[str, Any],
    "alternatives": int | None,
    "prefix": str,
    "required": tuple[str, ...],
    "forbidden": tuple[str, ...],
}
MARKS = ("'", "’")  # between a word and its ending
SINGLE = ("characters", "bytes")  # kinds of tokens shorter than words
TAKE_BLANKS = ("bpe", "unigram")  # kinds of tokens that include the space before a word


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationOptions:
    """How answers are generated; options that are left out keep the run's settings.

    An empty text has an empty answer, whatever the options.

    Args:
        decode: Decoding settings, nested: `{"beam": {"width": 8}}`.
        alternatives: Number of answers besides the best.
        prefix: What every answer starts with; it ends with a whole word.
        required: A word, or several, that every answer contains; they need beam search.
        forbidden: A word, or several, that no answer contains, as the tokenizer spells them.
    """

    decode: Mapping[str, Any] = field(default_factory=dict)
    alternatives: int | None = None
    prefix: str = ""
    required: Sequence[str] = ()
    forbidden: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name, kind in KINDS.items():
            value = getattr(self, name)
            value = dict(value) if isinstance(value, Mapping) else value
            object.__setattr__(self, name, fitting(kind, value, name))
        count = self.alternatives
        require(count is None or count >= 0, f"alternatives must be 0 or more, got {count}")
        at_most("alternatives", count, MOST_ANSWERS - 1)  # besides the best

    def decoding(self, default: DecodeConfig) -> DecodeConfig:
        """The default settings with these overrides; the beam is wide enough for all answers."""
        settings = build(DecodeConfig, merge_values(plain(default), self.decode), "decode.")
        refuse_unused(self.decode, settings.method)
        if self.alternatives is None:
            return settings
        require(
            settings.method != "greedy" or not self.alternatives,
            "greedy decoding gives no alternatives; use decode.method=beam or decode.method=sample",
        )
        beam, best = settings.beam, self.alternatives + 1
        enough = beam.groups * math.ceil(best / beam.groups)
        return replace(settings, best=best, beam=replace(beam, width=max(beam.width, enough)))


def refuse_unused(given: Mapping[str, Any], method: str, where: str = "decode") -> None:
    """Refuse settings that only another method uses.

    Args:
        where: The name of the section they are in.
    """
    for other in ("sample", "beam"):
        if other != method and given.get(other):
            raise GlassformerError(
                f"{where}.{other}.{next(iter(given[other]))} has no effect with {where}.method = "
                f"{method}; add {where}.method={other}, or leave it out"
            )


@dataclass(frozen=True, slots=True)
class Spelt:
    """The words of the options as tokens.

    Attributes:
        openings: The spelling of each required word at the start of an answer; () if it is the
            same.
        continuing: Tokens that turn a required word before them into another word.
        separating: Tokens after which a word starts without a space.
    """

    prefix: Tokens = ()
    required: tuple[Tokens, ...] = ()
    openings: tuple[Tokens, ...] = ()
    forbidden: tuple[Tokens, ...] = ()
    continuing: Tokens = ()
    separating: Tokens = ()

    @property
    def words(self) -> RequiredWords:
        """The required words, with the tokens at word boundaries."""
        words, openings = (tuple(map(tuple, some)) for some in (self.required, self.openings))
        return RequiredWords(words, openings, tuple(self.continuing), tuple(self.separating))

    @property
    def needed(self) -> int:
        """The number of tokens that every answer must have."""
        return len(self.prefix) + sum(map(len, self.required))


def spell(options: GenerationOptions, tokens: Tokenizer) -> Spelt:
    """The words of the options, as spelt by this tokenizer.

    Inside a sentence a word has a space before it, which most tokens include. So a forbidden word
    is ruled out in both spellings, and a required word is spelt with the space, or it would be
    joined to the word before it; it has none at the start of an answer and after punctuation
    ("l'eau"). No letters may follow it, either.
    """
    required = [_whole_word(tokens, word) for word in options.required]
    forbidden = [spelt for word in options.forbidden for spelt in _spellings(tokens, word)]
    spelt = Spelt(
        _beginning(tokens, options.prefix) if options.prefix else (),
        tuple(word for word, _ in required),
        tuple(opening for _, opening in required),
        tuple(forbidden),
        *(_boundaries(tokens) if required else ()),
    )
    _refuse_contradictions(options, spelt, tokens)
    return spelt


def _beginning(tokens: Tokenizer, prefix: str) -> Tokens:
    """A prefix without spaces around it, since the next word brings its own."""
    bare = prefix.strip() if tokens.kind in TAKE_BLANKS else prefix.lstrip()
    return _spelt(tokens, bare)


def _whole_word(tokens: Tokenizer, word: str) -> tuple[Tokens, Tokens]:
    """The spelling of a word inside an answer, and at its start if that differs."""
    bare, *others = _spellings(tokens, word)
    first = kind_of(word.strip()[0])
    if others and first in (LETTER, DIGIT) and _writes_blanks(tokens):
        return others[0], bare
    return bare, ()


def _boundaries(tokens: Tokenizer) -> tuple[Tokens, Tokens]:
    """Tokens that continue the word before them, and tokens after which a word starts.

    Both are empty if words are written without spaces.
    """
    if not _writes_blanks(tokens):
        return (), ()
    continuing, separating = [], []
    for number, (piece, first, last) in enumerate(_pieces(tokens.coder.tokens)):
        if first in (LETTER, DIGIT, INSIDE) and not piece.startswith(MARKS):
            continuing.append(number)
        if piece and (last not in (LETTER, DIGIT, INSIDE) or piece.endswith(MARKS)):
            separating.append(number)
    return tuple(continuing), tuple(separating)


def _pieces(tokens: list[bytes]) -> Iterator[tuple[str, int, int]]:
    """Every token as text, with the kinds of its first and last characters."""
    texts = (piece.decode(errors="replace") for piece in tokens)
    return zip(texts, *edges(tokens).tolist(), strict=True)


def _writes_blanks(tokens: Tokenizer) -> bool:
    """Whether words are separated by spaces, as in most scripts."""
    if tokens.kind not in (*TAKE_BLANKS, *SINGLE):
        return False
    pieces = tokens.coder.tokens
    if tokens.kind in SINGLE and b" " not in pieces:
        return False
    if tokens.kind in TAKE_BLANKS:
        pieces = [piece for piece in pieces if len(piece) > 1]  # single bytes are always there
    first = [kind for _, kind, _ in _pieces(pieces)]
    return first.count(ALONE) <= first.count(BLANK) + first.count(LETTER)


def _spellings(tokens: Tokenizer, word: str) -> list[Tokens]:
    """A word at the start, and after a space if the model writes spaces."""
    bare = _spelt(tokens, word.strip())
    inside: Tokens = tokens.encode([f" {word.strip()}"])[0].tolist()
    return [bare] if tokens.unknown in inside else [bare, inside]


def _refuse_contradictions(options: GenerationOptions, spelt: Spelt, tokens: Tokenizer) -> None:
    """Refuse a forbidden word that is also required."""
    present = {f"the prefix {options.prefix!r}": spelt.prefix}
    present |= {
        f"the required word {word!r}": ids
        for word, ids in zip(options.required, spelt.required, strict=True)
    }
    for word in options.forbidden:
        for where, ids in present.items():
            if any(_contains(ids, one) for one in _spellings(tokens, word)):
                raise GlassformerError(
                    f"{where} contains the forbidden word {word!r}; leave out one of them"
                )


def _contains(tokens: Tokens, word: Tokens) -> bool:
    starts = range(len(tokens) - len(word) + 1)
    return any(list(tokens[start : start + len(word)]) == list(word) for start in starts)


def _spelt(tokens: Tokenizer, text: str) -> Tokens:
    """The tokens of a text, refused if the model cannot write it."""
    ids: list[int] = tokens.encode([text])[0].tolist()
    if not ids or tokens.unknown in ids:
        raise GlassformerError(
            f"the model cannot write {text.strip()!r}: "
            + ("it is empty" if not ids else "some of it is in no training text")
            + "; leave it out"
        )
    return ids
