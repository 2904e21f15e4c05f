"""Relative positions: a term added to the score, by the distance between query and key."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.bias import DistanceBias
from glassformer.core.layout import Layout
from glassformer.core.positions.absolute import waves
from glassformer.core.positions.base import Position
from glassformer.core.shapes import NewKeys, Queries


class Alibi(Position):
    """Subtract a little for every step between query and key. Press et al., 2021."""

    def bias(self, q: Queries, queries: Layout, keys: Layout) -> DistanceBias:
        distance = distances(queries, keys)
        slopes = alibi_slopes(self.heads, q.device)
        return DistanceBias(-slopes[:, None] * distance.abs(), low=lowest(queries, keys))


class T5(Position):
    """A learned number for each bucket of distances. Raffel et al., 2020.

    Short distances have a bucket each; longer ones share buckets that grow wider.

    Args:
        buckets: Number of buckets; with `both_ways`, half of them for each direction.
        max_distance: From here on, all distances share the last bucket.
        both_ways: False if keys never lie ahead (a causal model), so that all buckets look back.
    """

    def __init__(
        self,
        dim: int,
        heads: int,
        max_length: int,
        *,
        width: int | None = None,
        buckets: int = 32,
        max_distance: int = 128,
        both_ways: bool = True,
    ) -> None:
        super().__init__(dim, heads, max_length, width=width)
        exact = buckets // 4 if both_ways else buckets // 2
        if exact < 1 or max_distance <= exact:
            raise ValueError(
                f"{buckets} buckets for distances up to {max_distance} leave no room to share; "
                f"give at least {4 if both_ways else 2} buckets, and distances over {max(exact, 1)}"
            )
        self.max_distance, self.both_ways = max_distance, both_ways
        self.worth = nn.Embedding(buckets, heads)
        nn.init.normal_(self.worth.weight, std=0.02)

    def bias(self, q: Queries, queries: Layout, keys: Layout) -> DistanceBias:
        distance = torch.arange(-self.max_distance, self.max_distance + 1, device=q.device)
        return DistanceBias(self.worth(self.bucket(distance)).T, low=-self.max_distance)

    def bucket(self, distance: Int[Tensor, " W"]) -> Int[Tensor, " W"]:
        """The bucket of each distance: one each up close, evenly spaced in log distance beyond."""
        buckets, steps = self.worth.num_embeddings, (-distance).clamp(min=0)
        ahead = torch.zeros_like(distance)
        if self.both_ways:
            buckets, steps = buckets // 2, distance.abs()
            ahead = (distance > 0) * buckets
        exact = buckets // 2
        reach = math.log(self.max_distance / exact)
        further = ((steps.clamp(min=1) / exact).log() / reach * (buckets - exact)).long()
        return ahead + torch.where(steps < exact, steps, (exact + further).clamp(max=buckets - 1))


class Shaw(Position):
    """A learned key for each distance up to `clip`: q·(k + a). Shaw et al., 2018.

    The paper's second table, added to the values, is omitted: its own ablation finds no gain.
    """

    def __init__(
        self, dim: int, heads: int, max_length: int, *, width: int | None = None, clip: int = 16
    ) -> None:
        super().__init__(dim, heads, max_length, width=width)
        self.clip = clip
        self.keys = nn.Embedding(2 * clip + 1, self.width)
        nn.init.normal_(self.keys.weight, std=0.02)

    def bias(self, q: Queries, queries: Layout, keys: Layout) -> DistanceBias:
        scores = q @ self.keys.weight.T / math.sqrt(q.shape[-1])  # (B, H, T, W) or (N, H, W)
        return DistanceBias(scores, low=-self.clip, by_query=True)


class TransformerXL(Position):
    """Content and distance scored separately: (q + u)·k + (q + v)·r. Dai et al., 2019.

    r is a projection of the sinusoidal encoding of the distance.
    """

    no_weight_decay = ("content", "distance")

    def __init__(self, dim: int, heads: int, max_length: int, *, width: int | None = None) -> None:
        super().__init__(dim, heads, max_length, width=width)
        self.to_r = nn.Linear(dim, heads * self.width, bias=False)
        self.content = nn.Parameter(torch.zeros(heads, self.width))  # u
        self.distance = nn.Parameter(torch.zeros(heads, self.width))  # v

    def turn(self, q: Queries, k: NewKeys, layout: Layout) -> tuple[Queries, NewKeys]:
        return q + by_head(self.content, q), k

    def bias(self, q: Queries, queries: Layout, keys: Layout) -> DistanceBias:
        back = -distances(queries, keys)  # the paper counts from the key to the query
        r = self.to_r(waves(back, self.dim).to(q.dtype)).unflatten(
            -1, (self.heads, -1)
        )  # (W, H, K)
        q = q + by_head(self.distance - self.content, q)
        shape = "bhtk,whk->bhtw" if q.ndim == 4 else "nhk,whk->nhw"
        scores = torch.einsum(shape, q, r) / math.sqrt(q.shape[-1])
        return DistanceBias(scores, low=lowest(queries, keys), by_query=True)


def distances(queries: Layout, keys: Layout) -> Int[Tensor, " W"]:
    """Every distance `key - query` that can occur, in order; just 0 if there are no tokens."""
    first = lowest(queries, keys)
    highest = max(keys.reach - 1 - queries.origin, first)
    return torch.arange(first, highest + 1, device=queries.device)


def lowest(queries: Layout, keys: Layout) -> int:
    """The first of `distances`."""
    return keys.origin + 1 - max(queries.reach, 1)


def by_head(vector: Float[Tensor, "H K"], q: Queries) -> Float[Tensor, "H ... K"]:
    """A vector for each head, shaped to be added to queries."""
    return vector[:, None] if q.ndim == 4 else vector


def alibi_slopes(heads: int, device: torch.device) -> Float[Tensor, " H"]:
    """A geometric series; past a power of two, filled from the odd terms of the next one."""
    power = 2 ** math.floor(math.log2(heads))
    steps = torch.arange(1, power + 1, device=device)
    between = torch.arange(1, 2 * (heads - power) + 1, 2, device=device)
    return torch.cat([2.0 ** (-8.0 * steps / power), 2.0 ** (-4.0 * between / power)])
