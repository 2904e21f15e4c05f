"""The next token of many requests, each with its own settings, in few calls."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.request import Request
from glassformer.decode.rules import Rules, build_rules
from glassformer.decode.scorer import log_probabilities
from glassformer.decode.stepwise import choose_tokens
from glassformer.decode.topk import topk
from glassformer.engine.generation import Alternatives, Generation

Chosen = tuple[int, float, Alternatives]


def choose(scores: Float[Tensor, "B V"], generations: Sequence[Generation]) -> list[Chosen]:
    """The next token of each request, its log-probability, and the likeliest tokens."""
    log_probs = log_probabilities(scores[:, None])  # (B, 1, V)
    allowed = apply_rules(log_probs, generations)
    tokens = torch.empty(len(generations), 1, dtype=torch.long, device=scores.device)
    for config, rows in by_settings(generations).items():
        chosen = [generations[row] for row in rows]
        index = torch.tensor(rows, device=scores.device)
        seeds = torch.tensor([one.request.seed for one in chosen], device=scores.device)
        steps = torch.tensor([len(one.scores) for one in chosen], device=scores.device)
        tokens[index] = choose_tokens(allowed[index], seeds, steps, config)
    found = log_probs[:, 0].gather(-1, tokens.clamp(min=0))[:, 0]
    others = alternatives(log_probs[:, 0], [one.request.decode.alternatives for one in generations])
    return list(zip(tokens[:, 0].tolist(), found.tolist(), others, strict=True))


def by_settings(generations: Sequence[Generation]) -> dict[DecodeConfig, list[int]]:
    """The rows that choose alike."""
    found: dict[DecodeConfig, list[int]] = {}
    for row, generation in enumerate(generations):
        found.setdefault(generation.choosing, []).append(row)
    return found


def apply_rules(
    log_probs: Float[Tensor, "B 1 V"], generations: Sequence[Generation]
) -> Float[Tensor, "B 1 V"]:
    """The log-probabilities under the rules of each request."""
    allowed = log_probs
    for row, generation in enumerate(generations):
        if (rules := rules_of(generation, log_probs.device)) is None:
            continue
        if allowed is log_probs:
            allowed = log_probs.clone()
        past = torch.tensor(generation.generated, dtype=torch.long, device=log_probs.device)
        allowed[row] = rules(log_probs[row : row + 1], past[None, None])[0]
    return allowed


def rules_of(generation: Generation, device: torch.device) -> Rules | None:
    """The rules of a request; None if there are none."""
    request, config = generation.request, generation.request.decode
    free = config.repetition == 1 and not config.no_repeat and not config.min_length
    if free and not request.forbidden:
        return None
    whole = Request(end=request.end, prompts=[request.prompt], forbidden=request.forbidden)
    return build_rules(whole, config, 1, device)


def alternatives(
    log_probs: Float[Tensor, "B V"], counts: Sequence[int]
) -> list[tuple[tuple[int, float], ...]]:
    """The likeliest tokens of each row, as many as it asks for."""
    if not any(counts):
        return [()] * len(counts)
    values, tokens = topk(log_probs, max(counts))
    pairs: list[tuple[Int[Tensor, " n"], Float[Tensor, " n"]]] = list(
        zip(tokens.tolist(), values.tolist(), strict=True)
    )
    return [
        tuple(zip(token[:count], value[:count], strict=True))
        for (token, value), count in zip(pairs, counts, strict=True)
    ]
