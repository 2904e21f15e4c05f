"""One token after another: the likeliest (greedy), or a random one (sampling).

    token = argmax of log p(token) + noise        noise 0 for greedy, Gumbel for a sample

The argmax of scores with Gumbel noise is a sample of their softmax. Several samples of a row are
ranked by the mean log-probability of their tokens (Adiwardana et al., 2020). Finished rows leave
the batch. A GPU is never waited for: tokens are read a few steps late, while it goes on, and what
was generated after an end is dropped.
"""

from collections import deque
from collections.abc import Generator
from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._triton import has_triton

from glassformer.config.decoding import DecodeConfig
from glassformer.core.cuda_graphs import graph_on, stepped
from glassformer.decode import noise
from glassformer.decode.active_rows import ActiveRows
from glassformer.decode.cancelling import raise_if_cancelled
from glassformer.decode.filters import filter_scores
from glassformer.decode.paths import END, LENGTH, STOP, STUCK, UNFINISHED, Hypothesis, Paths
from glassformer.decode.request import Request, row_limits
from glassformer.decode.rules import Rules, build_rules, scores_for_rules
from glassformer.decode.scorer import Scorer, log_probabilities
from glassformer.decode.stopping import build_stops
from glassformer.decode.topk import topk

BURST = {"cuda": 4}  # steps whose tokens are read together, while the next ones are computed


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
    limits, device = row_limits(scorer, request, config), scorer.first.device
    count, branches, longest = len(limits), config.best, max(limits)
    rows, ends = ActiveRows(count, scorer.compact_below), Ends(limits, branches, request, config)
    choice = Choice(
        Paths.empty(count, branches, longest, config.alternatives, device),
        build_rules(request, config, count, device),
        row_seeds(request, config, count).to(device),
        config,
    )
    burst, readings = BURST.get(device.type, 1), deque[Reading]()
    state = scorer.begin(branches, longest)
    tokens = scorer.first[:, None].expand(-1, branches)
    for step in range(longest):
        raise_if_cancelled()
        scores, state = scorer.step(tokens, state)
        tokens = choice(scores)
        if (step + 1) % burst and step + 1 < longest:
            continue
        readings.append(Reading(choice.paths.tokens[:, :, step // burst * burst : step + 1]))
        keep = None
        last = step + 1 == longest
        while readings and (last or keep is not None or burst == 1 or len(readings) > 1):
            for newest in readings.popleft().wait():
                if keep == []:
                    break  # the rest was generated in vain
                yield newest
                if ends.update(newest):
                    keep = rows.select(ends.unfinished())
        if keep is not None:
            rows.retire(keep, ends.rank(choice.paths))
            if not keep:
                break
            indices = torch.tensor(keep, device=device)
            state, tokens = state.select_rows(indices), tokens[indices]
            choice = choice.select_rows(indices)
            ends.select_rows(torch.tensor(keep))
    return rows.answers


class Choice:
    """Chooses the next tokens and writes them to the paths; on CUDA as a graph, if rules allow.

    Args:
        captured: Whether that may be a graph: the scores lie in the same memory at every step.
    """

    def __init__(
        self,
        paths: Paths,
        rules: Rules,
        seeds: Int[Tensor, " B"],
        config: DecodeConfig,
        step: int = 0,
        *,
        captured: bool = True,
    ) -> None:
        self.paths, self.rules, self.seeds, self.config = paths, rules, seeds, config
        self.step, self.captured, device = step, captured, paths.tokens.device
        self.at = torch.full((1,), step, device=device)  # the same, on the device
        self.tokens = torch.zeros_like(paths.lengths)
        self.each = torch.arange(paths.tokens.shape[1], device=device)[None]
        self.graph = graph_on(device, fixed=rules.steady) if captured else None
        greedy = config.method == "greedy" and not config.alternatives
        self.plain = greedy and self.graph is None
        self.quick = greedy and self.graph is not None and has_triton()

    def __call__(self, scores: Float[Tensor, "B W V"]) -> Int[Tensor, "B W"]:
        """The tokens to continue with; overwritten by the next call."""
        tokens = stepped(self._choose, scores, self.graph)
        self.step += 1
        return tokens

    def _choose(self, scores: Float[Tensor, "B W V"]) -> Int[Tensor, "B W"]:
        if self.quick:
            return self._choose_quickly(scores.float().contiguous())
        log_probs = log_probabilities(scores)
        read = scores_for_rules(scores, log_probs, self.config)
        allowed = self.rules(read, self.paths.tokens[:, :, : self.step])
        if self.plain and allowed is log_probs:
            return self._take_likeliest(log_probs)
        at = self.step if self.graph is None else self.at
        tokens = choose_tokens(allowed, self.seeds, at, self.config)
        self.paths.write(at, tokens, log_probs, self.each)
        if self.graph is not None:
            self.at += 1
        return torch.clamp(tokens, min=0, out=self.tokens)

    def _take_likeliest(self, log_probs: Float[Tensor, "B W V"]) -> Int[Tensor, "B W"]:
        """The same for greedy decoding without rules, where there always is a likeliest token."""
        values, tokens = topk(log_probs, 1)
        self.paths.tokens[:, :, self.step] = tokens[..., 0]
        self.paths.scores[:, :, self.step] = values[..., 0]
        return tokens[..., 0]

    def _choose_quickly(self, scores: Float[Tensor, "B W V"]) -> Int[Tensor, "B W"]:
        """The same for greedy decoding on CUDA, without the probabilities of all other tokens."""
        from glassformer.decode.greedy_kernel import choose

        allowed = self.rules(scores, self.paths.tokens[:, :, :0])
        choose(scores, allowed, self.tokens, self.paths.tokens, self.paths.scores, self.at)
        self.at += 1
        return self.tokens

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "Choice":
        """Continue with these rows only."""
        paths, rules = self.paths.select_rows(rows), self.rules.select_rows(rows)
        captured = self.captured
        return Choice(paths, rules, self.seeds[rows], self.config, self.step, captured=captured)


class Reading:
    """Tokens of some steps on their way from the device, as they are now."""

    def __init__(self, tokens: Int[Tensor, "B W n"]) -> None:
        self.event = torch.cuda.Event() if tokens.is_cuda else None
        self.tokens = tokens.to("cpu", non_blocking=True)
        if self.event is not None:
            self.event.record()

    def wait(self) -> tuple[Int[Tensor, "B W"], ...]:
        """The tokens of each step, once they have arrived."""
        if self.event is not None:
            self.event.synchronize()
        return self.tokens.unbind(-1)


def choose_tokens(
    scores: Float[Tensor, "B W V"],
    seeds: Int[Tensor, " B"],
    step: int | Int[Tensor, " b"],
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
        self.step, self.last = 0, {*limits}

    def update(self, tokens: Int[Tensor, "B W"]) -> bool:
        """Add a token to every branch; returns whether one ends with it."""
        step, numbers = self.step, tokens.numpy()
        self.step += 1
        ends = step + 1 in self.last or (numbers < 0).any() or (numbers == self.end).any()
        if not ends and self.stops is None:
            return False
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
        return bool(ending.any())

    def unfinished(self) -> list[bool]:
        """Which rows have unfinished branches."""
        found: list[bool] = (self.reasons == UNFINISHED).any(-1).tolist()
        return found

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
