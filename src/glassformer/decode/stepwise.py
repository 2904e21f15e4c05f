"""One token after another: the likeliest (greedy), or a random one (sampling).

    token = argmax of log p(token) + noise        noise 0 for greedy, Gumbel for a sample

The argmax of scores with Gumbel noise is a sample of their softmax. Several samples of a row are
ranked by the mean log-probability of their tokens (Adiwardana et al., 2020). Finished rows leave
the batch. The device is read once per step: which tokens were chosen.
"""

from collections.abc import Generator
from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode import noise
from glassformer.decode.active_rows import ActiveRows
from glassformer.decode.filters import filter_scores
from glassformer.decode.paths import END, LENGTH, STOP, STUCK, UNFINISHED, Hypothesis, Paths
from glassformer.decode.request import Request, resolve_limits
from glassformer.decode.rules import build_rules
from glassformer.decode.scorer import Scorer, log_probabilities
from glassformer.decode.stopping import build_stops
from glassformer.decode.topk import topk


@torch.no_grad()
def decode_stepwise(
    scorer: Scorer, request: Request, config: DecodeConfig
) -> list[list[Hypothesis]]:
    """The answers of each row: the greedy one, or `config.best` samples, best first."""
    steps = token_by_token(scorer, request, config)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(list[list[Hypothesis]], end.value)


def token_by_token(
    scorer: Scorer, request: Request, config: DecodeConfig
) -> Generator[Int[Tensor, "B W"], None, list[list[Hypothesis]]]:
    """The same, yielding the newest token of every branch that is still being decoded.

    To be advanced under `torch.no_grad`.
    """
    limits, device = resolve_limits(request, config, scorer), scorer.first.device
    count, branches, longest = len(limits), config.best, max(limits)
    rows, ends = ActiveRows(count, scorer.compact_below), Ends(limits, branches, request, config)
    paths = Paths.empty(count, branches, longest, config.alternatives, device)
    rules = build_rules(request, config, count, device)
    seeds = row_seeds(request, config, count).to(device)
    each = torch.arange(branches, device=device)[None]
    state = scorer.begin(branches, longest)
    tokens = scorer.first[:, None].expand(-1, branches)
    for step in range(longest):
        scores, state = scorer.step(tokens, state)
        log_probs = log_probabilities(scores)
        allowed = rules(log_probs, paths.tokens[:, :, :step])
        tokens = choose_tokens(allowed, seeds, step, config)
        paths.write(step, tokens, log_probs, each)
        newest = tokens.cpu()
        yield newest
        keep = rows.select(ends.update(step, newest))
        tokens = tokens.clamp(min=0)
        if keep is not None:
            rows.retire(keep, ends.rank(paths))
            if not keep:
                break
            indices = torch.tensor(keep, device=device)
            state, tokens, seeds = state.select_rows(indices), tokens[indices], seeds[indices]
            paths, rules = paths.select_rows(indices), rules.select_rows(indices)
            ends.select_rows(torch.tensor(keep))
    return rows.answers


def choose_tokens(
    scores: Float[Tensor, "B W V"],
    seeds: Int[Tensor, " B"],
    step: int | Int[Tensor, " B"],
    config: DecodeConfig,
) -> Int[Tensor, "B W"]:
    """The next token of every branch; -1 if no token is left to choose."""
    if config.method == "greedy":
        values, tokens = topk(scores, 1)
    else:
        values, tokens = filter_scores(scores, config.sample)
        key = noise.keys(seeds, scores.shape[1], step)
        values, index = (values + noise.gumbel(key, tokens)).max(-1, keepdim=True)
        tokens = tokens.expand(*scores.shape[:2], -1).gather(-1, index)
    return tokens.masked_fill(values == -torch.inf, -1)[..., 0]


def row_seeds(request: Request, config: DecodeConfig, rows: int) -> Int[Tensor, " B"]:
    """The request's seeds, or consecutive ones."""
    return torch.tensor(request.seeds or [config.sample.seed + row for row in range(rows)])


class Ends:
    """Where each branch ended and why, kept on the CPU."""

    def __init__(
        self, limits: list[int], branches: int, request: Request, config: DecodeConfig
    ) -> None:
        shape = (len(limits), branches)
        self.end, self.limits = request.end, torch.tensor(limits)[:, None]
        self.lengths = torch.zeros(shape, dtype=torch.long)
        self.reasons = torch.full(shape, UNFINISHED)
        self.stops = build_stops(request, config)
        self.tokens = torch.zeros(*shape, max(limits) if self.stops else 0, dtype=torch.long)

    def update(self, step: int, tokens: Int[Tensor, "B W"]) -> list[bool]:
        """Add a token to every branch; returns which rows have unfinished branches."""
        live = self.reasons == UNFINISHED
        now = torch.full_like(self.reasons, UNFINISHED)
        now[self.limits.expand(now.shape) == step + 1] = LENGTH
        if self.stops is not None:
            self.tokens[:, :, step] = tokens
            for row, branch in (live & (tokens >= 0)).nonzero().tolist():
                if self.stops.reached(self.tokens[row, branch, : step + 1].tolist()):
                    now[row, branch] = STOP
        now[tokens == self.end] = END
        now[tokens < 0] = STUCK
        ending = live & (now != UNFINISHED)
        self.lengths[ending], self.reasons[ending] = step + 1, now[ending]
        return (self.reasons == UNFINISHED).any(-1).tolist()

    def rank(self, paths: Paths) -> Paths:
        """The finished paths, best first, by the mean log-probability of their tokens."""
        device = paths.total.device
        lengths, reasons = self.lengths.to(device), self.reasons.to(device)
        inside = torch.arange(paths.scores.shape[-1], device=device) < lengths[..., None]
        mean = paths.scores.where(inside, 0.0).sum(-1) / lengths.clamp(min=1)
        total = mean.masked_fill(reasons == STUCK, -torch.inf)
        finished = replace(paths, total=total, lengths=lengths, reasons=reasons)
        return finished.select(total.argsort(dim=1, descending=True, stable=True))

    def select_rows(self, rows: Int[Tensor, " selected"]) -> None:
        """Continue with these rows only."""
        self.limits, self.lengths, self.reasons, self.tokens = (
            x[rows] for x in (self.limits, self.lengths, self.reasons, self.tokens)
        )
