"""Heads: where each of them looks, measured on some rows, and a name for what that looks like.

    previous, next    the token before or after the query
    own               the query's own token
    first             the first token, where heads with nothing to do tend to look
    delimiter         punctuation, spaces and special tokens
    diagonal          in cross-attention, the part of the source that lies as far as the query does
    broad             almost everything alike

Each share is the average weight that lands there, over the queries that have such a place and more
than one key. A head is named after the first of these places that gets at least NAMED of its weight
and LIFT times what uniform attention would put there, or `broad` if its entropy is at least BROAD
of the largest possible. Other heads have no name: attention depends on what the tokens say.

Clark et al., "What Does BERT Look At?", 2019; Voita et al., "Analyzing Multi-Head Self-Attention",
2019. A name says where a head looks, not that its model needs it: see `ablation`.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.explaining.parts import AttentionMap
from glassformer.explaining.record import significant

NAMED, LIFT = 0.5, 2.0
BROAD = 0.9
BAND = 0.1  # of the length, on either side of the diagonal; at least one key
PLACES = ("previous", "next", "own", "first", "delimiter", "diagonal")  # in the order of names

Place = Bool[Tensor, "T S"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadProfile:
    """Where one head looks.

    Attributes:
        layer: The path of its layer in the model.
        entropy: Of its weights, in nats, averaged over queries.
        evenness: The entropy as a share of that of uniform weights over the visible keys.
        distance: Between a query and what it looks at, in tokens; None in cross-attention.
        shares: The average weight at each place of PLACES that there is.
        kind: The name of what it does; empty if it has none.
    """

    layer: str
    head: int
    entropy: float
    evenness: float
    distance: float | None
    shares: dict[str, float]
    kind: str

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "layer": self.layer,
            "head": self.head,
            "kind": self.kind,
            "entropy": significant(self.entropy),
            "evenness": significant(self.evenness),
            "distance": None if self.distance is None else significant(self.distance),
            "shares": {place: significant(share) for place, share in self.shares.items()},
        }


def profile_heads(rows: Iterable[Sequence[AttentionMap]]) -> list[HeadProfile]:
    """Where every head of a model looks, over the attention maps of some rows."""
    sums: dict[str, Sums] = {}
    for maps in rows:
        for one in maps:
            sums.setdefault(one.name, Sums()).add(one)
    return [profile for name, found in sums.items() for profile in found.profiles(name)]


def without_gaps(one: AttentionMap) -> AttentionMap:
    """A map without tokens that neither look nor are looked at: all but the ends of words."""
    there = (one.weights > 0).any(0)
    looking, seen = there.any(1), there.any(0)
    return replace(
        one,
        queries=tuple(compress(one.queries, looking.tolist())),
        keys=tuple(compress(one.keys, seen.tolist())),
        weights=one.weights[:, looking][:, :, seen],
    )


def is_delimiter(token: str) -> bool:
    """Whether a token separates others rather than means something itself.

    >>> [is_delimiter(token) for token in (".", " ", "[SEP]", "<end>", "a.", "早")]
    [True, True, True, True, False, False]
    """
    if token[:1] + token[-1:] in ("[]", "<>"):
        return True
    return all(unicodedata.category(c)[0] in "PZC" for c in token)


@dataclass(slots=True)
class Sums:
    """Sums over queries, for the heads of one layer."""

    queries: int = 0
    entropy: Float[Tensor, " H"] | float = 0.0
    evenness: Float[Tensor, " H"] | float = 0.0
    distance: Float[Tensor, " H"] | None = None
    shares: dict[str, Float[Tensor, " H"]] = field(default_factory=dict)
    chances: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, one: AttentionMap) -> None:
        """Count the queries of one map that have a choice."""
        one = without_gaps(one)
        visible = (one.weights > 0).any(0)  # (T, S)
        chooses = visible.sum(-1) > 1
        weights, visible = one.weights[:, chooses].float(), visible[chooses]
        self.queries += int(chooses.sum())
        entropy = -torch.special.xlogy(weights, weights).sum(-1)  # (H, t)
        self.entropy += entropy.sum(-1)
        self.evenness += (entropy / visible.sum(-1).log()).sum(-1)
        if is_self_attention(one):
            far = steps_between(one).abs()[chooses]
            moved = (weights * far).sum((-1, -2))
            self.distance = moved if self.distance is None else self.distance + moved
        for name, place in places_of(one).items():
            self._add_place(name, place[chooses] & visible, weights, visible)

    def _add_place(
        self, name: str, place: Place, weights: Float[Tensor, "H T S"], visible: Place
    ) -> None:
        there = place.any(-1)
        share = (weights * place)[:, there].sum((-1, -2))
        chance = (place.sum(-1) / visible.sum(-1))[there].sum()
        self.shares[name] = self.shares.get(name, torch.zeros_like(share)) + share
        self.chances[name] = self.chances.get(name, 0.0) + float(chance)
        self.counts[name] = self.counts.get(name, 0) + int(there.sum())

    def profiles(self, layer: str) -> list[HeadProfile]:
        """The averages, head by head."""
        if not self.queries:
            return []
        there = [name for name in PLACES if self.counts.get(name)]
        shares = {name: (self.shares[name] / self.counts[name]).tolist() for name in there}
        chances = {name: self.chances[name] / self.counts[name] for name in there}
        entropy, evenness = (
            torch.as_tensor(total / self.queries).tolist()
            for total in (self.entropy, self.evenness)
        )
        distance = None if self.distance is None else (self.distance / self.queries).tolist()
        found = []
        for head in range(len(entropy)):
            own = {name: shares[name][head] for name in there}
            found.append(
                HeadProfile(
                    layer=layer,
                    head=head,
                    entropy=entropy[head],
                    evenness=evenness[head],
                    distance=None if distance is None else distance[head],
                    shares=own,
                    kind=kind_of(own, chances, evenness[head]),
                )
            )
        return found


def kind_of(shares: dict[str, float], chances: dict[str, float], evenness: float) -> str:
    """The name of a head by its shares; empty if it has none."""
    for place, share in shares.items():
        if share >= max(NAMED, LIFT * chances[place]):
            return place
    return "broad" if evenness >= BROAD else ""


def is_self_attention(one: AttentionMap) -> bool:
    """Whether queries and keys are positions of one sequence, by the name of the layer."""
    return re.search(r"(^|\.)blocks\.\d+\.attention$", one.name) is not None


def places_of(one: AttentionMap) -> dict[str, Place]:
    """Which pairs of query and key belong to each place."""
    device, queries, keys = one.weights.device, len(one.queries), len(one.keys)
    delimiters = torch.tensor([is_delimiter(token) for token in one.keys], device=device)
    first = torch.arange(keys, device=device) == 0
    found = {
        name: line.expand(queries, -1)
        for name, line in (("first", first), ("delimiter", delimiters))
    }
    if is_self_attention(one):
        steps = steps_between(one)
        return {"previous": steps == -1, "next": steps == 1, "own": steps == 0, **found}
    down = (torch.arange(queries, device=device) + 0.5) / queries
    along = (torch.arange(keys, device=device) + 0.5) / keys
    near = (along - down[:, None]).abs() <= max(BAND, 1 / keys)
    return {**found, "diagonal": near}


def steps_between(one: AttentionMap) -> Int[Tensor, "T S"]:
    """How far each key of self-attention lies after each query, its last tokens."""
    _, queries, keys = one.weights.shape
    at = torch.arange(keys, device=one.weights.device)
    return at - at[-1] + torch.arange(queries - 1, -1, -1, device=at.device)[:, None]
