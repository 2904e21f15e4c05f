"""What jobs that write text share: tokens with their scores, and decoding settings as typed."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from glassformer.config.values import Values, merge_values, parse_setting, written_settings
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.errors import GlassformerError


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer, its log-probability, and the alternatives to it."""

    id: int
    piece: str
    log_probability: float
    instead: tuple["Token", ...] = ()

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {"id": self.id, "piece": self.piece, "log_probability": self.log_probability}
        return values | ({"instead": [t.as_values() for t in self.instead]} if self.instead else {})


def tokens_of(found: Hypothesis, piece: Callable[[int], str]) -> tuple[Token, ...]:
    """The tokens of an answer, including its end.

    Args:
        piece: A token as it is shown.
    """
    ids = [*found.tokens, Tokenizer.end][: len(found.token_scores)]
    return tuple(
        Token(number, piece(number), score, tuple(Token(n, piece(n), s) for n, s in others))
        for number, score, others in zip(ids, found.token_scores, found.alternatives, strict=True)
    )


def confidence_of(tokens: Sequence[Token]) -> float:
    """The geometric mean of the tokens' probabilities."""
    return math.exp(sum(token.log_probability for token in tokens) / max(1, len(tokens)))


def decode_settings(settings: object) -> Values:
    """Decoding settings written as `decode.key=value`; a trained run takes no others."""
    values: Values = {}
    for setting in written_settings(settings):
        parsed = parse_setting(setting)
        if not isinstance(parsed.get("decode"), dict):
            raise GlassformerError(
                f"--set {setting}: a trained run takes decoding settings only, such as "
                f"--set decode.beam.width=8; leave it out"
            )
        values = merge_values(values, parsed["decode"])
    return values


def token_lines(tokens: Sequence[Mapping[str, Any]]) -> list[str]:
    """Tokens and their scores on one line; with alternatives, one line per token."""
    if any(token.get("instead") for token in tokens):
        return [f"  {' or '.join(map(_scored, (token, *_others(token))))}" for token in tokens]
    return [f"  {' | '.join(map(_scored, tokens))}"] if tokens else []


def _others(token: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alternatives to a token, without the token itself."""
    return [other for other in token["instead"] if other["id"] != token["id"]]


def _scored(token: Mapping[str, Any]) -> str:
    """A token and its log-probability, with its spaces made visible."""
    return f"{token['piece'].replace(' ', '␣')} {token['log_probability']:.3f}"
