"""Beam search: the best few branches are followed at once; the best that finish are the answers.

At each step every branch of a row is continued with every token, and the best candidates become the
new branches. Those that end are finished, and compared by their sum of log-probabilities over a
length penalty. A row is done when no branch can finish better than the worst of the W finished ones
(`Ranking.reachable`).

Branches may form groups, which choose one after another: a token costs extra for each branch of an
earlier group that just chose it; the cost does not enter its score. Vijayakumar et al., 2016.
Required words are in `required.py`.

The device is read once per step (which rows are done), and once more for stop texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.active_rows import ActiveRows
from glassformer.decode.automaton import RequiredWords
from glassformer.decode.cancelling import raise_if_cancelled
from glassformer.decode.paths import END, LENGTH, STOP, UNFINISHED, Hypothesis, Paths
from glassformer.decode.penalties import Ranking
from glassformer.decode.request import Request, row_limits
from glassformer.decode.required import Required, build_required
from glassformer.decode.rules import build_rules
from glassformer.decode.scorer import Scorer, log_probabilities
from glassformer.decode.stopping import Stops, build_stops
from glassformer.decode.topk import topk


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Candidates:
    """Continuations of branches, best first: the branch, the token, and the sum with it."""

    parents: Int[Tensor, "B n"]
    tokens: Int[Tensor, "B n"]
    total: Float[Tensor, "B n"]

    def select(self, indices: Int[Tensor, "B m"]) -> "Candidates":
        """These of each row, in this order."""
        return Candidates(
            parents=self.parents.gather(1, indices),
            tokens=self.tokens.gather(1, indices),
            total=self.total.gather(1, indices),
        )


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Group:
    """Unfinished branches, the best finished ones, and the former's states of required words."""

    live: Paths
    finished: Paths
    states: Int[Tensor, "B w"]

    def select_rows(self, rows: Int[Tensor, " selected"]) -> "Group":
        """These rows only."""
        return Group(
            live=self.live.select_rows(rows),
            finished=self.finished.select_rows(rows),
            states=self.states[rows],
        )


@torch.no_grad()
def beam_search(scorer: Scorer, request: Request, config: DecodeConfig) -> list[list[Hypothesis]]:
    """The best answers of each row, best first."""
    limits, device = row_limits(scorer, request, config), scorer.first.device
    search = Search(request, config, limits, device)
    rows = ActiveRows(len(limits), scorer.compact_below)
    state = scorer.begin(config.beam.width, max(limits))
    tokens = scorer.first[:, None].expand(-1, config.beam.width)
    for step in range(max(limits)):
        raise_if_cancelled()
        scores, state = scorer.step(tokens, state)
        tokens, parents = search.advance(step, log_probabilities(scores))
        keep = rows.select((~search.done).tolist())
        if keep is not None:
            rows.retire(keep, search.answers())
            if not keep:
                break
            indices = torch.tensor(keep, device=device)
            search.select_rows(indices)
            state, tokens, parents = state.select_rows(indices), tokens[indices], parents[indices]
        state = state.reorder(parents)
    else:
        rows.retire((), search.answers())  # a row with NaN scores is never done
    return rows.answers


class Search:
    """The state of a search, apart from the model's."""

    def __init__(
        self, request: Request, config: DecodeConfig, limits: list[int], device: torch.device
    ) -> None:
        rows, beam = len(limits), config.beam
        self.request, self.config = request, config
        self.limits = torch.tensor(limits, device=device)[:, None]  # (B, 1)
        self.rules = build_rules(request, config, rows, device)
        self.required: Required | None = None
        self.stops, self.ranking = build_stops(request, config), Ranking(beam, max(limits), device)
        size = (rows, beam.width // beam.groups, max(limits), config.alternatives, device)
        self.groups = []
        for _ in range(beam.groups):
            live = Paths.empty(*size)
            live.total[:, 0] = 0  # all branches are the same at first, and one of them is enough
            states = torch.zeros_like(live.lengths)
            self.groups.append(Group(live=live, finished=Paths.empty(*size), states=states))
        self.done = torch.zeros(rows, dtype=torch.bool, device=device)

    def advance(
        self, step: int, log_probs: Float[Tensor, "B W V"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B W"]]:
        """Take one step; returns the newest token of every branch, and the branch it continues."""
        width, vocab_size = self.groups[0].live.total.shape[1], log_probs.shape[-1]
        if step == 0:  # only now is the size of the vocabulary known
            self.required = build_required(self.request, self.config, self.limits, vocab_size)
        chosen: list[Candidates] = []
        for index, group in enumerate(self.groups):
            own = log_probs[:, index * width : (index + 1) * width]
            self.groups[index], new = self._advance_group(group, step, own, chosen)
            chosen.append(replace(new, parents=new.parents + index * width))
        done = [self._is_done(group, step + 1) for group in self.groups]
        self.done = self.done | torch.stack(done).all(0)
        tokens, parents = (
            torch.cat([getattr(new, name) for new in chosen], 1) for name in ("tokens", "parents")
        )
        return tokens, parents

    def answers(self) -> Paths:
        """The best finished branches of all groups, without duplicates."""
        finished = self.groups[0].finished
        for group in self.groups[1:]:
            finished = finished.concat(group.finished)
        same = (finished.tokens[:, :, None] == finished.tokens[:, None]).all(-1)  # (B, W, W)
        duplicate = same.tril(-1).any(-1)
        total = finished.total.masked_fill(duplicate, -torch.inf)
        return replace(finished, total=total).best(self.config.best)

    def select_rows(self, rows: Int[Tensor, " selected"]) -> None:
        """Continue with these rows only."""
        self.limits, self.done = self.limits[rows], self.done[rows]
        self.rules = self.rules.select_rows(rows)
        self.required = None if self.required is None else self.required.select_rows(rows)
        self.groups = [group.select_rows(rows) for group in self.groups]

    def _advance_group(
        self, group: Group, step: int, log_probs: Float[Tensor, "B w V"], earlier: list[Candidates]
    ) -> tuple[Group, Candidates]:
        """A group after one step, and the candidates that became its branches."""
        live, width = group.live, group.live.total.shape[1]
        tokens = live.tokens[:, :, :step]
        scores = self.rules(log_probs, tokens)
        if self.required is not None:
            fallback = self.rules.forbidden_only()(log_probs, tokens)
            scores = self.required.constrain(scores, fallback, group.states, step)
        candidates = self._candidates(group, scores, earlier)
        reasons = self._reasons(tokens, candidates)
        # Candidates after the first `width` only replace those that end.
        first = Candidates(
            parents=candidates.parents[:, :width],
            tokens=candidates.tokens[:, :width],
            total=candidates.total[:, :width],
        )
        finished = self._finish(group, step, log_probs, first, reasons[:, :width])
        ends = reasons != UNFINISHED
        unfinished = ends.to(torch.uint8).argsort(dim=1, stable=True)[:, :width]
        new = candidates.select(unfinished)
        total = new.total.masked_fill(ends.gather(1, unfinished), -torch.inf)
        live = replace(_extend(live, step, log_probs, new), total=total)
        states = group.states
        if self.required is not None:
            states = self.required.advance(states, new.parents, new.tokens)
        return Group(live=live, finished=finished, states=states), new

    def _candidates(
        self, group: Group, scores: Float[Tensor, "B w V"], earlier: list[Candidates]
    ) -> Candidates:
        """The best continuations: as many as may end now, and as many again to replace them."""
        total, width = group.live.total, group.live.total.shape[1]
        penalised = scores
        if earlier and self.config.beam.diversity:
            penalised = scores - self.config.beam.diversity * _counts(earlier, scores)
        values, tokens = topk(penalised, 2 * width)  # (B, w, k)
        if self.required is not None:
            values, tokens = self.required.add_candidates(values, tokens, penalised, group.states)
        branch = torch.arange(width, device=total.device)[:, None].expand(tokens.shape[1:])
        ranked_by = (total[..., None] + values).flatten(1)  # (B, w k)
        sums = (total[..., None] + scores.gather(-1, tokens)).flatten(1)
        every = Candidates(
            parents=branch.flatten().expand(len(total), -1),
            tokens=tokens.flatten(1),
            total=sums.masked_fill(ranked_by == -torch.inf, -torch.inf),
        )
        if self.required is None:
            return every.select(ranked_by.topk(2 * width).indices)
        order = self.required.order(ranked_by, every.parents, every.tokens, group.states)
        return every.select(order[:, : 2 * width])

    def _finish(
        self,
        group: Group,
        step: int,
        log_probs: Float[Tensor, "B w V"],
        candidates: Candidates,
        reasons: Int[Tensor, "B w"],
    ) -> Paths:
        """The best finished branches, these candidates included; rows that are done get none."""
        ends = (reasons != UNFINISHED) & ~self.done[:, None]
        if ends.device.type == "cpu" and not ends.any():  # reading costs nothing on a CPU
            return group.finished
        paths = _extend(group.live, step, log_probs, candidates)
        lengths = torch.full_like(paths.lengths, step + 1)
        score = self.ranking.scores(candidates.total, step + 1).masked_fill(~ends, -torch.inf)
        new = replace(paths, total=score, lengths=lengths, reasons=reasons)
        return group.finished.concat(new).best(group.finished.total.shape[1])

    def _is_done(self, group: Group, length: int) -> Bool[Tensor, " B"]:
        """Whether no branch can finish better than the worst finished one."""
        bound = self.ranking.reachable(group.live.total, length, self.limits)
        return bound.amax(1) <= group.finished.total.amin(1)

    def _reasons(self, tokens: Int[Tensor, "B w t"], candidates: Candidates) -> Int[Tensor, "B n"]:
        """Why each candidate ends with its newest token, or UNFINISHED."""
        length = tokens.shape[-1] + 1
        reasons = torch.full_like(candidates.tokens, UNFINISHED)
        reasons = reasons.masked_fill(self.limits == length, LENGTH)
        if self.stops is not None:
            reasons = reasons.masked_fill(self._at_stop(self.stops, tokens, candidates), STOP)
        return reasons.masked_fill(candidates.tokens == self.request.end, END)

    def _at_stop(
        self, stops: Stops, tokens: Int[Tensor, "B w t"], candidates: Candidates
    ) -> Bool[Tensor, "B n"]:
        """Which candidates reach a stop text after all of their required words."""
        row = torch.arange(len(tokens), device=tokens.device)[:, None]
        first = max(0, tokens.shape[-1] + 1 - stops.window)
        words: Sequence[RequiredWords | None] = [None] * len(tokens)
        if self.required is not None:
            first, words = 0, self.required.words
        parents = tokens[row, candidates.parents, first:]
        tails = torch.cat([parents, candidates.tokens[..., None]], -1)
        reached = [
            [stops.reached(tail, row_words) for tail in row_tails]
            for row_tails, row_words in zip(tails.tolist(), words, strict=True)
        ]
        return torch.tensor(reached, device=tokens.device)


def _extend(
    live: Paths, step: int, log_probs: Float[Tensor, "B w V"], candidates: Candidates
) -> Paths:
    """The branches with these candidates."""
    paths = live.select(candidates.parents)
    paths.write(step, candidates.tokens, log_probs, candidates.parents)
    return paths


def _counts(earlier: list[Candidates], scores: Float[Tensor, "B w V"]) -> Float[Tensor, "B 1 V"]:
    """How many branches of earlier groups just chose each token."""
    counts = scores.new_zeros(len(scores), scores.shape[-1])
    for group in earlier:
        live = (group.total > -torch.inf).to(counts.dtype)
        counts = counts.scatter_add(1, group.tokens, live)
    return counts[:, None]
