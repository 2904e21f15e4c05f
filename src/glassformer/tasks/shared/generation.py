"""Generation options: how the answers of one prediction are written.

A run writes as its settings say, unless an option says otherwise: another search, more answers, or
words that must or must not occur in them.
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
SINGLE = ("characters", "bytes")  # kinds of tokens of which words have many
TAKE_BLANKS = ("bpe", "unigram")  # kinds of tokens that take along the blank before a word


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationOptions:
    """How answers are generated; what is left out stays as the run has it.

    An empty text has an empty answer, whatever the options.

    Args:
        decode: Settings of decoding, nested: `{"beam": {"width": 8}}`.
        alternatives: So many other answers beside the best.
        prefix: What every answer begins with; it ends with a whole word.
        required: RequiredWords that every answer has, or one word; they need beam search.
        forbidden: RequiredWords that no answer has, as the tokenizer spells them, or one word.
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
        at_most("alternatives", count, MOST_ANSWERS - 1)  # beside the best

    def decoding(self, usual: DecodeConfig) -> DecodeConfig:
        """The usual settings with those given here; a beam is as wide as the answers need."""
        settings = build(DecodeConfig, merge_values(plain(usual), self.decode), "decode.")
        refuse_unused(self.decode, settings.method)
        if self.alternatives is None:
            return settings
        require(
            settings.method != "greedy" or not self.alternatives,
            "greedy writing finds one answer and no alternatives; use decode.method=beam or sample",
        )
        beam, best = settings.beam, self.alternatives + 1
        enough = beam.groups * math.ceil(best / beam.groups)
        return replace(settings, best=best, beam=replace(beam, width=max(beam.width, enough)))


def refuse_unused(given: Mapping[str, Any], method: str, where: str = "decode") -> None:
    """Refuse settings that only another method uses.

    Args:
        where: The name of the table that they are in.
    """
    for other in ("sample", "beam"):
        if other != method and given.get(other):
            raise GlassformerError(
                f"{where}.{other}.{next(iter(given[other]))} has no effect with {where}.method = "
                f"{method}; add {where}.method={other}, or leave it out"
            )


@dataclass(frozen=True, slots=True)
class Spelt:
    """The words of the options in tokens.

    Attributes:
        openings: Of each required word, how it is spelt where an answer begins with it, if that
            is otherwise.
        continuing: Tokens that would make another word of a required one before them.
        separating: Tokens behind which a word begins without a blank.
    """

    prefix: Tokens = ()
    required: tuple[Tokens, ...] = ()
    openings: tuple[Tokens, ...] = ()
    forbidden: tuple[Tokens, ...] = ()
    continuing: Tokens = ()
    separating: Tokens = ()

    @property
    def words(self) -> RequiredWords:
        """The required words, with what makes them words of their own."""
        words, openings = (tuple(map(tuple, some)) for some in (self.required, self.openings))
        return RequiredWords(words, openings, tuple(self.continuing), tuple(self.separating))

    @property
    def needed(self) -> int:
        """Tokens that every answer has, whatever it says besides."""
        return len(self.prefix) + sum(map(len, self.required))


def spell(options: GenerationOptions, tokens: Tokenizer) -> Spelt:
    """The words of the options as these tokens write them.

    Inside a sentence a word has a blank before it, which most tokens take along. So a forbidden
    word is out in both spellings, and a required word is the one with the blank, or else it would
    be glued to the word before it; it has none where an answer begins with it, and behind signs
    ("l'eau"). No more letters follow it, either.
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
    """A prefix without blanks around it; the next word brings its own, or else there were two."""
    bare = prefix.strip() if tokens.kind in TAKE_BLANKS else prefix.lstrip()
    return _spelt(tokens, bare)


def _whole_word(tokens: Tokenizer, word: str) -> tuple[Tokens, Tokens]:
    """How a word is spelt inside an answer, and at its beginning, if that is otherwise."""
    bare, *others = _spellings(tokens, word)
    first = kind_of(word.strip()[0])
    if others and first in (LETTER, DIGIT) and _writes_blanks(tokens):
        return others[0], bare
    return bare, ()


def _boundaries(tokens: Tokenizer) -> tuple[Tokens, Tokens]:
    """Tokens that go on with the word before them, and tokens behind which a word begins.

    There are none where words are not written with blanks.
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
    """Every token as text, with the kinds of its first and its last character."""
    texts = (piece.decode(errors="replace") for piece in tokens)
    return zip(texts, *edges(tokens).tolist(), strict=True)


def _writes_blanks(tokens: Tokenizer) -> bool:
    """Whether blanks stand before words, as in most scripts."""
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
    """A word at the beginning, and after a blank, where the model writes blanks."""
    bare = _spelt(tokens, word.strip())
    inside: Tokens = tokens.encode([f" {word.strip()}"])[0].tolist()
    return [bare] if tokens.unknown in inside else [bare, inside]


def _refuse_contradictions(options: GenerationOptions, spelt: Spelt, tokens: Tokenizer) -> None:
    """Refuse a forbidden word that is also required."""
    present = {f"the prefix {options.prefix!r}": spelt.prefix}
    present |= {
        f"the required word {word!r}": its_tokens
        for word, its_tokens in zip(options.required, spelt.required, strict=True)
    }
    for word in options.forbidden:
        for where, its_tokens in present.items():
            if any(_contains(its_tokens, one) for one in _spellings(tokens, word)):
                raise GlassformerError(
                    f"{where} has the forbidden word {word!r} in it; leave one of them out"
                )


def _contains(tokens: Tokens, word: Tokens) -> bool:
    starts = range(len(tokens) - len(word) + 1)
    return any(list(tokens[start : start + len(word)]) == list(word) for start in starts)


def _spelt(tokens: Tokenizer, text: str) -> Tokens:
    """The tokens of a text, refused where the model has none."""
    ids: list[int] = tokens.encode([text])[0].tolist()
    if not ids or tokens.unknown in ids:
        raise GlassformerError(
            f"the model cannot write {text.strip()!r}: "
            + ("it is empty" if not ids else "some of it is in no text that it learned from")
            + "; leave it out"
        )
    return ids
