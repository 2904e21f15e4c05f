"""Filters: which tokens chance may choose from. Each takes scores and gives scores.

    temperature   scores / t
    top_p         the likeliest that together reach a share p             Holtzman et al., 2019
    min_p         those at least min_p times as likely as the likeliest   Nguyen et al., 2024
    typical       those whose surprise is nearest to its average          Meister et al., 2022

What is sifted out scores minus infinity; at least one token always stays. A share is taken of what
the filters before have left, and adding a number to all scores of a line changes nothing. `sifted`
applies them in order, after top_k: the k likeliest are all that the others need to look at.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.config.decoding import SampleConfig
from glassformer.decode.best import top

Lines = Float[Tensor, "*rows n"]


def temperature(scores: Lines, t: float) -> Lines:
    """Differences stretched (t below 1) or flattened (above 1)."""
    return scores / t


def top_p(scores: Lines, p: float) -> Lines:
    """The smallest set of likeliest tokens whose probabilities sum to at least p."""
    shares, order = scores.softmax(-1).sort(dim=-1, descending=True)
    before = shares.cumsum(-1) - shares
    return _without(scores, order, before >= p)


def min_p(scores: Lines, share: float) -> Lines:
    """Tokens at least `share` times as likely as the likeliest."""
    likely = scores.softmax(-1)
    return scores.masked_fill(likely < share * likely.amax(-1, keepdim=True), -torch.inf)


def typical(scores: Lines, share: float) -> Lines:
    """The smallest set of tokens nearest to the entropy in surprise that reaches `share`."""
    surprise = -scores.log_softmax(-1)
    likely = (-surprise).exp()
    entropy = (likely * surprise).nan_to_num(0.0).sum(-1, keepdim=True)  # 0 times infinity is 0
    order = (surprise - entropy).abs().argsort(dim=-1, stable=True)
    shares = likely.gather(-1, order)
    before = shares.cumsum(-1) - shares
    return _without(scores, order, before >= share)


def sifted(
    scores: Float[Tensor, "B W V"], config: SampleConfig
) -> tuple[Float[Tensor, "B W n"], Int[Tensor, "*#places n"]]:
    """Scores of the tokens that may be chosen, all filters applied, and which tokens they are."""
    if config.top_k:
        scores, tokens = top(scores, config.top_k)
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


def _without(scores: Lines, order: Int[Tensor, "*rows n"], out: Bool[Tensor, "*rows n"]) -> Lines:
    """Scores without those marked, given in another order; the first of that order stays."""
    out[..., 0] = False
    return scores.masked_fill(torch.zeros_like(out).scatter(-1, order, out), -torch.inf)
