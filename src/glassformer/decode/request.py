"""What each row must and must not contain, as tokens."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.fusion import Fusion
from glassformer.decode.scorer import Scorer
from glassformer.errors import GlassformerError

Tokens = Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """Constraints on the output of each row; a field that is left empty constrains nothing.

    Attributes:
        end: The token that ends a row; -1 for none.
        prompts: Tokens before each row's output, which count for the rules against repetition.
        prefix: Tokens that each row begins with.
        limits: The maximum number of tokens of each row, if below `max_length`.
        forbidden: Words (tokens) that no row contains.
        required: Words that each row contains; beam search only.
        openings: The spelling of each required word at the beginning of a row and directly after
            a token of `separating`; () if it is the same.
        continuing: Tokens that turn a required word before them into another word.
        separating: Tokens after which a word may begin without a space.
        seeds: The seed of each row.
        detokenize: From tokens to text, to find stop texts.
        fusion: A language model whose scores are added.
    """

    end: int
    prompts: Sequence[Tokens] = ()
    prefix: Sequence[Tokens] = ()
    limits: Sequence[int] = ()
    forbidden: Sequence[Tokens] = ()
    required: Sequence[Sequence[Tokens]] = ()
    openings: Sequence[Sequence[Tokens]] = ()
    continuing: Tokens = ()
    separating: Tokens = ()
    seeds: Sequence[int] = ()
    detokenize: Callable[[Sequence[int]], str] | None = None
    fusion: Fusion | None = None


def row_limits(scorer: Scorer, request: Request, config: DecodeConfig) -> list[int]:
    """The maximum number of tokens of each row of a scorer; refuses a request that does not fit."""
    return resolve_limits(request, config, len(scorer.first), scorer.room)


def resolve_limits(
    request: Request, config: DecodeConfig, rows: int, rooms: Sequence[int] | None = None
) -> list[int]:
    """The same for so many rows.

    Args:
        rooms: How many tokens the model has positions for in each row; None for no limit.
    """
    for name in ("prompts", "prefix", "limits", "required", "openings", "seeds"):
        values = getattr(request, name)
        if len(values) not in (0, rows):
            raise ValueError(
                f"`{name}` has {len(values)} rows, but the batch has {rows}; give {rows} or none"
            )
    limits = [max(1, min(config.max_length, n)) for n in request.limits]
    limits = limits or [config.max_length] * rows
    for row, room in enumerate(rooms or ()):
        if room < 1:
            raise GlassformerError(
                f"row {row + 1}: the prompt leaves no positions for an answer; shorten it"
            )
        limits[row] = min(limits[row], room)
    _check_words(request, config)
    for row, limit in enumerate(limits):
        length = len(request.prefix[row]) if request.prefix else 0
        if length > limit:
            raise too_long_error(row, length, limit, config)
    return limits


def together(requests: Sequence[Request]) -> Request:
    """Requests that differ only in what belongs to their rows, as one."""
    rows: dict[str, Any] = {
        name: [row for one in requests for row in getattr(one, name)]
        for name in ("prompts", "prefix", "limits", "required", "openings", "seeds")
    }
    return replace(requests[0], **rows)


def too_long_error(row: int, needed: int, limit: int, config: DecodeConfig) -> GlassformerError:
    """The error for a row whose prefix and required words do not fit."""
    raise_limit = "raise decode.max_length or " if limit == config.max_length else ""
    return GlassformerError(
        f"row {row + 1}: its prefix and required words need {needed} tokens, but the limit is "
        f"{limit}; {raise_limit}require fewer words"
    )


def _check_words(request: Request, config: DecodeConfig) -> None:
    words = [*request.forbidden, *(word for row in request.required for word in row)]
    if not all(len(word) for word in words):
        raise GlassformerError("a forbidden or required word has no tokens; leave it out")
    if request.required and config.method != "beam":
        raise GlassformerError(
            f"required words need beam search, but decode.method is {config.method}; "
            f"set decode.method=beam"
        )
    if config.stop and request.detokenize is None:
        raise ValueError("stop texts need `detokenize`, from tokens to text; pass one")


def pad_tokens(
    lines: Sequence[Tokens], device: torch.device, *, left: bool = False
) -> Int[Tensor, "lines longest"]:
    """Lines of tokens, padded with -1 on the right, or on the left."""
    longest = max(map(len, lines), default=0)
    padded = []
    for line in lines:
        padding = [-1] * (longest - len(line))
        padded.append([*padding, *line] if left else [*line, *padding])
    return torch.tensor(padded, dtype=torch.long, device=device).reshape(len(lines), longest)
