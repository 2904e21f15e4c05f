"""One token after another: the likeliest (greedy), or one drawn by chance (sampling).

    token = argmax of log p(token) + noise        noise 0 for greedy, Gumbel for a sample

The argmax of scores with Gumbel noise is a sample of their softmax. Several samples of a row are
ranked by the average log-probability of their tokens (Adiwardana et al., 2020). A row that has
ended leaves the batch. The device is read once a step: which tokens were chosen.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode import noise
from glassformer.decode.best import top
from glassformer.decode.filters import sifted
from glassformer.decode.paths import END, GOES_ON, LENGTH, STOP, STUCK, Hypothesis, Paths
from glassformer.decode.request import Request, checked_limits
from glassformer.decode.rows import Rows
from glassformer.decode.rules import rules_of
from glassformer.decode.scorer import Scorer, log_probabilities
from glassformer.decode.stopping import stops_of


@torch.no_grad()
def write_stepwise(
    scorer: Scorer, request: Request, config: DecodeConfig
) -> list[list[Hypothesis]]:
    """The answers of each row: the likeliest, or as many samples as asked for, best first."""
    limits, device = checked_limits(request, config, scorer), scorer.first.device
    count, branches, longest = len(limits), config.best, max(limits)
    rows, ends = Rows(count, scorer.compact_below), Ends(limits, branches, request, config)
    paths = Paths.empty(count, branches, longest, config.alternatives, device)
    rules = rules_of(request, config, count, device)
    seeds = seeds_of(request, config, count).to(device)
    each = torch.arange(branches, device=device)[None]
    state = scorer.begin(branches, longest)
    tokens = scorer.first[:, None].expand(-1, branches)
    for step in range(longest):
        scores, state = scorer.step(tokens, state)
        own = log_probabilities(scores)
        ruled = rules(own, paths.tokens[:, :, :step])
        tokens = chosen(ruled, seeds, step, config)
        paths.write(step, tokens, own, each)
        stay = rows.staying(ends.going_on(step, tokens.cpu()))
        tokens = tokens.clamp(min=0)
        if stay is not None:
            rows.leave(stay, ends.ranked(paths))
            if not stay:
                break
            kept = torch.tensor(stay, device=device)
            state, tokens, seeds = state.kept(kept), tokens[kept], seeds[kept]
            paths, rules = paths.kept(kept), rules.kept(kept)
            ends.keep(torch.tensor(stay))
    return rows.answers


def chosen(
    scores: Float[Tensor, "B W V"], seeds: Int[Tensor, " B"], step: int, config: DecodeConfig
) -> Int[Tensor, "B W"]:
    """The next token of every branch; -1 where no token is left to choose."""
    if config.method == "greedy":
        values, tokens = top(scores, 1)
    else:
        values, tokens = sifted(scores, config.sample)
        key = noise.keys(seeds, scores.shape[1], step)
        values, at = (values + noise.gumbel(key, tokens)).max(-1, keepdim=True)
        tokens = tokens.expand(*scores.shape[:2], -1).gather(-1, at)
    return tokens.masked_fill(values == -torch.inf, -1)[..., 0]


def seeds_of(request: Request, config: DecodeConfig, rows: int) -> Int[Tensor, " B"]:
    """Each row's own, or one after another."""
    return torch.tensor(request.seeds or [config.sample.seed + row for row in range(rows)])


class Ends:
    """Where each branch has ended and why, known without asking the device."""

    def __init__(
        self, limits: list[int], branches: int, request: Request, config: DecodeConfig
    ) -> None:
        shape = (len(limits), branches)
        self.end, self.limits = request.end, torch.tensor(limits)[:, None]
        self.lengths = torch.zeros(shape, dtype=torch.long)
        self.reasons = torch.full(shape, GOES_ON)
        self.stops = stops_of(request, config)
        self.said = torch.zeros(*shape, max(limits) if self.stops else 0, dtype=torch.long)

    def going_on(self, step: int, tokens: Int[Tensor, "B W"]) -> list[bool]:
        """Whether any branch of each row goes on after these tokens."""
        alive = self.reasons == GOES_ON
        now = torch.full_like(self.reasons, GOES_ON)
        now[self.limits.expand(now.shape) == step + 1] = LENGTH
        if self.stops is not None:
            self.said[:, :, step] = tokens
            for row, branch in (alive & (tokens >= 0)).nonzero().tolist():
                if self.stops.found(self.said[row, branch, : step + 1].tolist()):
                    now[row, branch] = STOP
        now[tokens == self.end] = END
        now[tokens < 0] = STUCK
        ending = alive & (now != GOES_ON)
        self.lengths[ending], self.reasons[ending] = step + 1, now[ending]
        return (self.reasons == GOES_ON).any(-1).tolist()

    def ranked(self, paths: Paths) -> Paths:
        """The paths as they ended, best first, by the average log-probability of their tokens."""
        device = paths.total.device
        lengths, reasons = self.lengths.to(device), self.reasons.to(device)
        inside = torch.arange(paths.scores.shape[-1], device=device) < lengths[..., None]
        mean = paths.scores.where(inside, 0.0).sum(-1) / lengths.clamp(min=1)
        total = mean.masked_fill(reasons == STUCK, -torch.inf)
        ended = replace(paths, total=total, lengths=lengths, reasons=reasons)
        return ended.picked(total.argsort(dim=1, descending=True, stable=True))

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows alone."""
        self.limits, self.lengths, self.reasons, self.said = (
            x[rows] for x in (self.limits, self.lengths, self.reasons, self.said)
        )
