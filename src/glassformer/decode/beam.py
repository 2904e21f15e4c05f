"""Beam search: the best few ways are followed at once, and the best that ended are the answers.

At each step every way of a row is followed by every token; of all that, the best go on. Those that
end are put aside and compared by their score over a penalty for their length. A row is done when
none that goes on can end better than the worst of the W put aside (`Ranking.reachable`).

Ways may be in groups, which choose one after another: a token costs extra for each way of an
earlier group that has just chosen it, which does not enter its score. Vijayakumar et al., 2016.
With required words, ways are also ranked among those equally far with them (`required.py`).

The device is read once a step (which rows are done), and once more for texts to stop at.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.decode.automaton import Words
from glassformer.decode.best import top
from glassformer.decode.paths import END, GOES_ON, LENGTH, STOP, Hypothesis, Paths
from glassformer.decode.penalties import Ranking
from glassformer.decode.request import Request, checked_limits
from glassformer.decode.required import Required, required_of
from glassformer.decode.rows import Rows
from glassformer.decode.rules import rules_of
from glassformer.decode.scorer import Scorer, log_probabilities
from glassformer.decode.stopping import Stops, stops_of


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Candidates:
    """Ways to go on, from the best down: which branch, which token, and the sum so far."""

    parents: Int[Tensor, "B n"]
    tokens: Int[Tensor, "B n"]
    total: Float[Tensor, "B n"]

    def picked(self, at: Int[Tensor, "B m"]) -> "Candidates":
        """These of each row, in this order."""
        return Candidates(
            parents=self.parents.gather(1, at),
            tokens=self.tokens.gather(1, at),
            total=self.total.gather(1, at),
        )


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class Group:
    """Ways that go on, the best of those that ended, and what the former have of their words."""

    live: Paths
    ended: Paths
    states: Int[Tensor, "B w"]

    def kept(self, rows: Int[Tensor, " kept"]) -> "Group":
        """These rows alone."""
        return Group(
            live=self.live.kept(rows), ended=self.ended.kept(rows), states=self.states[rows]
        )


@torch.no_grad()
def search_beam(scorer: Scorer, request: Request, config: DecodeConfig) -> list[list[Hypothesis]]:
    """The best answers of each row, from the best down."""
    limits, device = checked_limits(request, config, scorer), scorer.first.device
    search = Search(request, config, limits, device)
    rows = Rows(len(limits), scorer.compact_below)
    state = scorer.begin(config.beam.width, max(limits))
    tokens = scorer.first[:, None].expand(-1, config.beam.width)
    for step in range(max(limits)):
        scores, state = scorer.step(tokens, state)
        tokens, parents = search.advance(step, log_probabilities(scores))
        stay = rows.staying((~search.done).tolist())
        if stay is not None:
            rows.leave(stay, search.answers())
            if not stay:
                break
            kept = torch.tensor(stay, device=device)
            search.keep(kept)
            state, tokens, parents = state.kept(kept), tokens[kept], parents[kept]
        state = state.branched(parents)
    else:
        rows.leave((), search.answers())  # no row is done whose scores are not numbers
    return rows.answers


class Search:
    """All that a search knows besides the model's state."""

    def __init__(
        self, request: Request, config: DecodeConfig, limits: list[int], device: torch.device
    ) -> None:
        rows, beam = len(limits), config.beam
        self.request, self.config = request, config
        self.limits = torch.tensor(limits, device=device)[:, None]  # (B, 1)
        self.rules = rules_of(request, config, rows, device)
        self.required: Required | None = None
        self.stops, self.ranking = stops_of(request, config), Ranking(beam, max(limits), device)
        size = (rows, beam.width // beam.groups, max(limits), config.alternatives, device)
        self.groups = []
        for _ in range(beam.groups):
            live = Paths.empty(*size)
            live.total[:, 0] = 0  # all branches are alike at first, and one of them is enough
            states = torch.zeros_like(live.lengths)
            self.groups.append(Group(live=live, ended=Paths.empty(*size), states=states))
        self.done = torch.zeros(rows, dtype=torch.bool, device=device)

    def advance(
        self, step: int, own: Float[Tensor, "B W V"]
    ) -> tuple[Int[Tensor, "B W"], Int[Tensor, "B W"]]:
        """Go one step on; returns the newest token of every branch, and where it comes from."""
        width = self.groups[0].live.total.shape[1]
        if step == 0:  # when the size of the vocabulary is known
            self.required = required_of(self.request, self.config, self.limits, own.shape[-1])
        chosen: list[Candidates] = []
        for number, group in enumerate(self.groups):
            part = own[:, number * width : (number + 1) * width]
            self.groups[number], new = self._advanced(group, step, part, chosen)
            chosen.append(replace(new, parents=new.parents + number * width))
        done = [self._is_done(group, step + 1) for group in self.groups]
        self.done = self.done | torch.stack(done).all(0)
        tokens, parents = (
            torch.cat([getattr(new, name) for new in chosen], 1) for name in ("tokens", "parents")
        )
        return tokens, parents

    def answers(self) -> Paths:
        """The best that ended, of all groups; what several groups say counts once."""
        ended = self.groups[0].ended
        for group in self.groups[1:]:
            ended = ended.beside(group.ended)
        same = (ended.tokens[:, :, None] == ended.tokens[:, None]).all(-1)  # (B, W, W)
        again = same.tril(-1).any(-1)
        once = replace(ended, total=ended.total.masked_fill(again, -torch.inf))
        return once.best(self.config.best)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these rows alone."""
        self.limits, self.done = self.limits[rows], self.done[rows]
        self.rules = self.rules.kept(rows)
        self.required = None if self.required is None else self.required.kept(rows)
        self.groups = [group.kept(rows) for group in self.groups]

    def _advanced(
        self, group: Group, step: int, own: Float[Tensor, "B w V"], earlier: list[Candidates]
    ) -> tuple[Group, Candidates]:
        """A group one step on, and how its ways went on."""
        live, width = group.live, group.live.total.shape[1]
        said = live.tokens[:, :, :step]
        ruled = self.rules(own, said)
        if self.required is not None:
            forced = self.rules.forbidding()(own, said)
            ruled = self.required.ruled(ruled, forced, group.states, step)
        ways = self._candidates(group, ruled, earlier)
        reasons = self._reasons(said, ways)
        # Those behind the first `width` are only there to take the place of ways that ended.
        first = Candidates(
            parents=ways.parents[:, :width],
            tokens=ways.tokens[:, :width],
            total=ways.total[:, :width],
        )
        ended = self._put_aside(group, step, own, first, reasons[:, :width])
        over = reasons != GOES_ON
        go_on = over.to(torch.uint8).argsort(dim=1, stable=True)[:, :width]
        new = ways.picked(go_on)
        total = new.total.masked_fill(over.gather(1, go_on), -torch.inf)
        live = replace(_written(live, step, own, new), total=total)
        states = group.states
        if self.required is not None:
            states = self.required.stepped(states, new.parents, new.tokens)
        return Group(live=live, ended=ended, states=states), new

    def _candidates(
        self, group: Group, ruled: Float[Tensor, "B w V"], earlier: list[Candidates]
    ) -> Candidates:
        """The best ways to go on: as many as may end now, and as many again to go on."""
        total, width = group.live.total, group.live.total.shape[1]
        liked = ruled
        if earlier and self.config.beam.diversity:
            liked = ruled - self.config.beam.diversity * _counts(earlier, ruled)
        values, tokens = top(liked, 2 * width)  # (B, w, k)
        if self.required is not None:
            values, tokens = self.required.joined(values, tokens, liked, group.states)
        branch = torch.arange(width, device=total.device)[:, None].expand(tokens.shape[1:])
        worth = (total[..., None] + values).flatten(1)  # (B, w k)
        sums = (total[..., None] + ruled.gather(-1, tokens)).flatten(1)
        every = Candidates(
            parents=branch.flatten().expand(len(total), -1),
            tokens=tokens.flatten(1),
            total=sums.masked_fill(worth == -torch.inf, -torch.inf),
        )
        if self.required is None:
            return every.picked(worth.topk(2 * width).indices)
        order = self.required.order(worth, every.parents, every.tokens, group.states)
        return every.picked(order[:, : 2 * width])

    def _put_aside(
        self,
        group: Group,
        step: int,
        own: Float[Tensor, "B w V"],
        ways: Candidates,
        reasons: Int[Tensor, "B w"],
    ) -> Paths:
        """The best that ended, with those of these ways that do; a row that is done takes none."""
        over = (reasons != GOES_ON) & ~self.done[:, None]
        if over.device.type == "cpu" and not over.any():  # where asking costs nothing
            return group.ended
        paths = _written(group.live, step, own, ways)
        lengths = torch.full_like(paths.lengths, step + 1)
        score = self.ranking.scores(ways.total, step + 1).masked_fill(~over, -torch.inf)
        new = replace(paths, total=score, lengths=lengths, reasons=reasons)
        return group.ended.beside(new).best(group.ended.total.shape[1])

    def _is_done(self, group: Group, length: int) -> Bool[Tensor, " B"]:
        """Whether none that goes on can end better than the worst that is kept."""
        hope = self.ranking.reachable(group.live.total, length, self.limits)
        return hope.amax(1) <= group.ended.total.amin(1)

    def _reasons(self, said: Int[Tensor, "B w t"], ways: Candidates) -> Int[Tensor, "B n"]:
        """Why each way ends with its newest token, or that it goes on."""
        length = said.shape[-1] + 1
        reasons = torch.full_like(ways.tokens, GOES_ON)
        reasons = reasons.masked_fill(self.limits == length, LENGTH)
        if self.stops is not None:
            reasons = reasons.masked_fill(self._at_stop(self.stops, said, ways), STOP)
        return reasons.masked_fill(ways.tokens == self.request.end, END)

    def _at_stop(
        self, stops: Stops, said: Int[Tensor, "B w t"], ways: Candidates
    ) -> Bool[Tensor, "B n"]:
        """Which ways have come to a text to stop at, behind all of their words."""
        row = torch.arange(len(said), device=said.device)[:, None]
        first = max(0, said.shape[-1] + 1 - stops.window)
        words: Sequence[Words | None] = [None] * len(said)
        if self.required is not None:
            first, words = 0, self.required.words
        tails = torch.cat([said[row, ways.parents, first:], ways.tokens[..., None]], -1)
        found = [
            [stops.found(tokens, its_words) for tokens in branches]
            for branches, its_words in zip(tails.tolist(), words, strict=True)
        ]
        return torch.tensor(found, device=said.device)


def _written(live: Paths, step: int, own: Float[Tensor, "B w V"], ways: Candidates) -> Paths:
    """The paths that these ways make."""
    paths = live.picked(ways.parents)
    paths.write(step, ways.tokens, own, ways.parents)
    return paths


def _counts(earlier: list[Candidates], scores: Float[Tensor, "B w V"]) -> Float[Tensor, "B 1 V"]:
    """How many ways of earlier groups have just chosen each token."""
    counts = scores.new_zeros(len(scores), scores.shape[-1])
    for group in earlier:
        alive = (group.total > -torch.inf).to(counts.dtype)
        counts = counts.scatter_add(1, group.tokens, alive)
    return counts[:, None]
