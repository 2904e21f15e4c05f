"""Wishes: how answers are to be written, said when they are asked for.

A run writes as it was trained to, unless it is told otherwise: by another search, with more
answers, or with words that must or must not stand in them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from glassformer.config import build, require
from glassformer.config.decoding import DecodeConfig
from glassformer.config.values import laid_over, plain
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError

Tokens = Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What is asked of answers; what is left out stays as the run has it.

    Args:
        decode: Settings of decoding, nested: `{"beam": {"width": 8}}`.
        alternatives: So many other answers beside the best.
        prefix: What every answer begins with.
        required: Words that every answer has; they need beam search.
        forbidden: Words that no answer has, as the tokenizer spells them.
    """

    decode: Mapping[str, Any] = field(default_factory=dict)
    alternatives: int | None = None
    prefix: str = ""
    required: tuple[str, ...] = ()
    forbidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = self.alternatives
        require(count is None or count >= 0, f"alternatives must be 0 or more, got {count}")

    def decoding(self, usual: DecodeConfig) -> DecodeConfig:
        """The usual settings with those wished for; a beam is as wide as the answers need."""
        settings = build(DecodeConfig, laid_over(plain(usual), self.decode), "decode.")
        if self.alternatives is None:
            return settings
        require(
            settings.method != "greedy" or not self.alternatives,
            "greedy writing finds one answer and no alternatives; use decode.method=beam or sample",
        )
        beam, best = settings.beam, self.alternatives + 1
        enough = beam.groups * math.ceil(best / beam.groups)
        return replace(settings, best=best, beam=replace(beam, width=max(beam.width, enough)))


@dataclass(frozen=True, slots=True)
class Spelt:
    """The words of a wish in tokens."""

    prefix: Tokens = ()
    required: tuple[Tokens, ...] = ()
    forbidden: tuple[Tokens, ...] = ()


def spell(wish: Wish, tokens: Tokenizer) -> Spelt:
    """The words of a wish as these tokens write them.

    Inside a sentence a word takes along the blank before it. So a forbidden word is out in both
    spellings, and a required word is the one with the blank, where that takes no more tokens.
    """
    prefix = _spelt(tokens, wish.prefix) if wish.prefix else ()
    required = [_shortest(_spellings(tokens, word)) for word in wish.required]
    forbidden = [spelt for word in wish.forbidden for spelt in _spellings(tokens, word)]
    return Spelt(prefix, tuple(required), tuple(forbidden))


def _spellings(tokens: Tokenizer, word: str) -> list[Tokens]:
    """A word at the beginning, and after a blank, where the model writes blanks."""
    bare = _spelt(tokens, word.strip())
    inside: Tokens = tokens.encode([f" {word.strip()}"])[0].tolist()
    return [bare] if tokens.unknown in inside else [bare, inside]


def _shortest(spellings: list[Tokens]) -> Tokens:
    return min(reversed(spellings), key=len)  # of equals, the one inside a sentence


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
