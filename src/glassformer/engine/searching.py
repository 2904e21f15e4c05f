"""Searches of the engine: those that begin in the same step with the same settings go on as one.

A search has several branches, each a row of the engine's steps like any other text. After every
step it says which branch each of them continues.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.config.decoding import MOST_ANSWERS, DecodeConfig
from glassformer.decode.paths import Hypothesis
from glassformer.decode.request import Request, resolve_limits, together
from glassformer.decode.scorer import log_probabilities
from glassformer.decode.searches import branches_of, stepped_search
from glassformer.engine.generation import Branch, Source


class Finished(NamedTuple):
    """A search that has ended.

    Attributes:
        answers: The best first; none if the rules allowed no token, or scores were not numbers.
    """

    first: "SearchBranch"
    answers: list[Hypothesis]
    is_nan: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRequest:
    """A search, whose answers are ranked.

    Attributes:
        prompt: At least one token: the start of an encoder-decoder.
        rules: What the answers must and must not contain, for a single row.
        fewer: A lower limit on their tokens, known once the source is encoded.
    """

    prompt: tuple[int, ...]
    source: Source
    decode: DecodeConfig
    rules: Request
    fewer: Callable[[], int] | None = None

    @property
    def limit(self) -> int:
        """The most tokens of an answer; refuses rules that contradict each other."""
        return resolve_limits(self.rules, self.decode, 1)[0]

    @property
    def width(self) -> int:
        """How many branches it has."""
        return branches_of(self.decode)

    @property
    def kind(self) -> Hashable:
        """What searches that go on together have in common."""
        rules = self.rules
        words = (
            tuple(map(tuple, rules.forbidden)),
            *map(tuple, (rules.continuing, rules.separating)),
        )
        given = bool(rules.prefix), bool(rules.required), bool(rules.seeds)
        return self.decode, rules.end, words, given, id(rules.fusion)


@dataclass(kw_only=True, eq=False, slots=True)
class SearchBranch(Branch):
    """A branch of a search; of the tokens that it has written, the search knows the earlier ones.

    Attributes:
        searching: The search, once it has begun.
    """

    request: SearchRequest
    searching: "Searching | None" = field(default=None, repr=False)

    @property
    def every(self) -> "list[SearchBranch]":
        """All branches of a search, this one the first of them."""
        return [self, *(one for one in self.others if isinstance(one, SearchBranch))]


class Searching:
    """Searches that began together.

    Args:
        firsts: The first branch of each.
    """

    def __init__(self, firsts: Sequence[SearchBranch], device: torch.device) -> None:
        self.firsts, self.device, self.step = list(firsts), device, 0
        decode, rules = firsts[0].request.decode, [limited(one) for one in firsts]
        limits = [limit for one in rules for limit in one.limits]
        self.longest = max(limits)
        self.search = stepped_search(together(rules), decode, limits, device)
        for one in self.branches:
            one.searching = self

    @property
    def branches(self) -> list[SearchBranch]:
        """All branches, row by row."""
        return [branch for first in self.firsts for branch in first.every]

    def advance(self, scores: Float[Tensor, "branches V"]) -> tuple[list[Finished], list[int]]:
        """Choose the next token of every branch.

        Returns the searches that end, and the branch that each of the others continues, as places
        in `branches`.
        """
        rows = len(self.firsts)
        log_probs = log_probabilities(scores.unflatten(0, (rows, -1)))
        tokens, parents = self.search.advance(self.step, log_probs)
        self.step += 1
        done = [one or self.step == self.longest for one in self.search.done.tolist()]
        finished: list[Finished] = []
        if any(done):
            ended = [row for row in range(rows) if done[row]]
            paths = self.search.answers().select_rows(torch.tensor(ended, device=self.device))
            firsts = [self.firsts[row] for row in ended]
            is_nan = paths.total.isnan().any(1).tolist()
            finished = list(map(Finished, firsts, paths.answers(), is_nan))
            keep = [row for row in range(rows) if not done[row]]
            tokens, parents = tokens[keep], parents[keep]
            self._keep(keep)
        for one, token in zip(self.branches, tokens.flatten().tolist(), strict=True):
            one.tokens.append(token)
            one.chosen += 1
        first = torch.arange(len(parents), device=parents.device)[:, None] * parents.shape[1]
        return finished, (parents + first).flatten().tolist()

    def leave(self, first: SearchBranch) -> None:
        """Go on without a search."""
        if first in self.firsts:
            self._keep([row for row, one in enumerate(self.firsts) if one is not first])

    def _keep(self, rows: list[int]) -> None:
        self.firsts = [self.firsts[row] for row in rows]
        if rows:
            self.search.select_rows(torch.tensor(rows, device=self.device))


def limited(first: SearchBranch) -> Request:
    """The rules of a search, with the limit that is known now."""
    fewer = first.request.fewer
    limit = first.limit if fewer is None else min(first.limit, max(1, fewer()))
    return replace(first.request.rules, limits=[limit])


def branched(
    number: int, request: SearchRequest, limit: int, owner: Hashable = None
) -> SearchBranch:
    """The branches of a search of this number, as the first, which has the others."""
    spare = (-number * MOST_ANSWERS - place for place in range(1, request.width))
    first, *others = [
        SearchBranch(
            number=one,
            request=request,
            prompt=request.prompt,
            origin=request.source,
            limit=limit,
            tokens=[*request.prompt],
            owner=owner,
        )
        for one in (number, *spare)
    ]
    first.others = others
    return first


def by_kind(firsts: Iterable[SearchBranch]) -> Iterable[list[SearchBranch]]:
    """Searches that can go on together."""
    kinds: dict[Hashable, list[SearchBranch]] = {}
    for one in firsts:
        kinds.setdefault(one.request.kind, []).append(one)
    return kinds.values()
