"""What is asked of each row, in tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.scorer import Scorer
from glassformer.errors import GlassformerError

Tokens = Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What rows must and must not say. What is left out asks for nothing.

    Attributes:
        end: The token that ends a row; -1 where none does.
        before: Tokens of each row that count as said already: its prompt.
        prefix: Tokens that each row begins with.
        limits: The most tokens for each row, where that is less than `max_length`.
        forbidden: Words, each some tokens, that no row says.
        required: Words that each row must say; for beam search.
        openings: For each of these words, how it is spelt where a row begins with it or behind a
            token of `separating`, if that is otherwise; () where it is not.
        continuing: Tokens that would make another word of a required one that they follow.
        separating: Tokens behind which a word may begin without a blank.
        seeds: The seed of each row.
        text: From tokens to text, to find the texts at which to stop.
    """

    end: int
    before: Sequence[Tokens] = ()
    prefix: Sequence[Tokens] = ()
    limits: Sequence[int] = ()
    forbidden: Sequence[Tokens] = ()
    required: Sequence[Sequence[Tokens]] = ()
    openings: Sequence[Sequence[Tokens]] = ()
    continuing: Tokens = ()
    separating: Tokens = ()
    seeds: Sequence[int] = ()
    text: Callable[[Sequence[int]], str] | None = None


def checked_limits(request: Request, config: DecodeConfig, scorer: Scorer) -> list[int]:
    """The most tokens for each row, once the request fits the rows and itself."""
    rows = len(scorer.first)
    for name in ("before", "prefix", "limits", "required", "openings", "seeds"):
        given = getattr(request, name)
        if len(given) not in (0, rows):
            raise ValueError(
                f"`{name}` is given for {len(given)} rows of {rows}; give it for all, or for none"
            )
    limits = [max(1, min(config.max_length, n)) for n in request.limits]
    limits = limits or [config.max_length] * rows
    for row, room in enumerate(scorer.room or ()):
        if room < 1:
            raise GlassformerError(
                f"row {row + 1}: the model has no room left to write in; shorten the prompt"
            )
        limits[row] = min(limits[row], room)
    _refuse_words(request, config)
    for row, limit in enumerate(limits):
        length = len(request.prefix[row]) if request.prefix else 0
        if length > limit:
            raise no_room(row, length, limit, config)
    return limits


def no_room(row: int, needed: int, limit: int, config: DecodeConfig) -> GlassformerError:
    """The error for a row whose prefix and required words do not fit."""
    raise_it = "raise decode.max_length or " if limit == config.max_length else ""
    return GlassformerError(
        f"row {row + 1}: its prefix and required words have {needed} tokens, but it may have "
        f"{limit}; {raise_it}ask for fewer"
    )


def _refuse_words(request: Request, config: DecodeConfig) -> None:
    words = [*request.forbidden, *(word for row in request.required for word in row)]
    if not all(len(word) for word in words):
        raise GlassformerError("a forbidden or required word has no tokens; leave it out")
    if request.required and config.method != "beam":
        raise GlassformerError(
            f"required words need a search, but decode.method is {config.method}; "
            f"set decode.method=beam"
        )
    if config.stop and request.text is None:
        raise ValueError("texts to stop at need `text`, from tokens to text; give one")


def table(
    lines: Sequence[Tokens], device: torch.device, *, left: bool = False
) -> Int[Tensor, "lines longest"]:
    """Lines of tokens, filled up with -1 on the right, or on the left."""
    longest = max(map(len, lines), default=0)
    filled = []
    for line in lines:
        fill = [-1] * (longest - len(line))
        filled.append([*fill, *line] if left else [*line, *fill])
    return torch.tensor(filled, dtype=torch.long, device=device).reshape(len(lines), longest)
