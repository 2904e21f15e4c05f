"""Filters: which tokens sampling may choose from. Each takes scores and returns scores.

    temperature   scores / t
    top_p         the likeliest tokens that together reach probability p       Holtzman et al., 2019
    min_p         tokens at least min_p times as likely as the likeliest       Nguyen et al., 2024
    typical       tokens whose nll is closest to the entropy                   Meister et al., 2022

A token that is filtered out scores minus infinity; at least one token always remains. Probabilities
are those among the tokens that earlier filters left, and adding a constant to all scores of a line
changes nothing. `filter_scores` applies them in order, after top_k: the other filters only look at
the k likeliest tokens.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.config.decoding import SampleConfig
from glassformer.decode.topk import topk

Lines = Float[Tensor, "*rows n"]
ROUNDING = 1e-6  # that sums of probabilities in fp32 may be off by


def temperature(scores: Lines, t: float) -> Lines:
    """Sharper (t below 1) or flatter (above 1)."""
    return scores / t


def top_p(scores: Lines, p: float) -> Lines:
    """The smallest set of likeliest tokens whose probabilities sum to at least p."""
    probs, order = scores.softmax(-1).sort(dim=-1, descending=True)
    return _drop(scores, order, before_each(probs) >= p - ROUNDING)


def min_p(scores: Lines, share: float) -> Lines:
    """Tokens at least `share` times as likely as the likeliest."""
    probs = scores.softmax(-1)
    return scores.masked_fill(probs < share * probs.amax(-1, keepdim=True), -torch.inf)


def typical(scores: Lines, share: float) -> Lines:
    """The smallest set of tokens with nll closest to the entropy that reaches `share`."""
    nll = -scores.log_softmax(-1)
    probs = (-nll).exp()
    entropy = (probs * nll).nan_to_num(0.0).sum(-1, keepdim=True)  # 0 times infinity is 0
    order = (nll - entropy).abs().argsort(dim=-1, stable=True)
    sorted_probs = probs.gather(-1, order)
    return _drop(scores, order, before_each(sorted_probs) >= share - ROUNDING)


def filter_scores(
    scores: Float[Tensor, "B W V"], config: SampleConfig
) -> tuple[Float[Tensor, "B W n"], Int[Tensor, "*#places n"]]:
    """Scores of the tokens that may be chosen after all filters, and these tokens."""
    if config.top_k:
        scores, tokens = topk(scores, config.top_k)
    else:
        tokens = torch.arange(scores.shape[-1], device=scores.device)
    if config.temperature != 1:
        scores = temperature(scores, config.temperature)
    if config.top_p < 1:
        scores = top_p(scores, config.top_p)
    if config.min_p > 0:
        scores = min_p(scores, config.min_p)
    if config.typical < 1:
        scores = typical(scores, config.typical)
    return scores, tokens


def before_each(probs: Lines) -> Lines:
    """The sum of the probabilities before each; exactly 0 before the first."""
    sums = torch.zeros_like(probs)
    sums[..., 1:] = probs[..., :-1].cumsum(-1)
    return sums


def _drop(scores: Lines, order: Int[Tensor, "*rows n"], dropped: Bool[Tensor, "*rows n"]) -> Lines:
    """Scores without the dropped ones, which are given in sorted order; the first always stays."""
    dropped[..., 0] = False
    return scores.masked_fill(torch.zeros_like(dropped).scatter(-1, order, dropped), -torch.inf)
