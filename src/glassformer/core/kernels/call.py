"""A call to attention, and what a kernel declares about the calls it supports.

The description of a call holds only facts known on the host, so that choosing a kernel never waits
for a GPU.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.core.bias import DistanceBias
from glassformer.core.caches.branching import Ancestry
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask
from glassformer.core.shapes import Answers, Keys, Queries, Values


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Call:
    """Everything about one call except the queries, keys and values.

    Attributes:
        softcap: If given, scores stay within ± this limit, before a bias is added.
        aligned: Whether the queries are the last tokens of the keys, row by row: self-attention,
            with or without a cache.
        branches: If the queries are branches of their rows, what each sees and its position; the
            layouts then only count queries and keys.
    """

    mask: Mask
    queries: Layout
    keys: Layout
    scale: float
    softcap: float | None = None
    bias: DistanceBias | None = None
    dropout: float = 0.0
    aligned: bool = False
    branches: Ancestry | None = None

    def allowed(self) -> Bool[Tensor, "b 1 t S"] | None:
        """Who may see whom in padded rows, as the smallest possible tensor; None if all may.

        Where only padding is hidden, one line of keys per row is enough: without a mask, and for
        the newest token looking back.
        """
        if self.branches is not None:
            return self.branches.table(self.mask)
        newest = self.aligned and self.queries.longest == 1
        if self.mask.band != (None, None) and not (newest and self.mask.band == (None, 0)):
            return self.mask.table(self.queries, self.keys)
        return None if self.keys.is_full else self.keys.real[:, None, None, :]

    def bias_scores(self) -> Float[Tensor, "b H t S"] | None:
        """What the position scheme adds to the scores in padded rows; None if nothing."""
        if self.bias is None:
            return None
        if self.branches is not None:
            return self.branches.scores(self.bias)
        return self.bias.scores(self.queries, self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class Supports:
    """What a kernel can do on one kind of device."""

    dtypes: frozenset[torch.dtype] | None = None  # None: all of them
    masks: Literal["any", "same for all rows", "bands"] = "any"
    bias: bool = True
    softcap: bool = False
    dropout: bool = True
    gradient: bool = True
    weights: bool = False
    branches: bool = False
    widest: int | None = None  # heads of at most this width; None: of any

    def missing(self, q: Queries, k: Keys, v: Values, call: Call, weights: bool) -> str | None:
        """What this call needs and the kernel lacks; None if it lacks nothing."""
        if weights and not self.weights:
            return "return the weights"
        if call.branches is not None and not self.branches:
            return "attend along branches"
        if self.dtypes is not None and q.dtype not in self.dtypes:
            return f"work in {str(q.dtype).removeprefix('torch.')}"
        if self.masks != "any" and call.mask.rows > 1:
            return "apply a mask that differs by row"
        if self.masks == "bands" and not _is_plain_band(call):
            return f"apply the mask {call.mask} to these queries and keys"
        if call.bias is not None and not self.bias:
            return "add a position's bias to the scores"
        if call.softcap is not None and not self.softcap:
            return "cap scores"
        if call.dropout and not self.dropout:
            return "apply dropout"
        if not self.gradient and wants_gradient(q, k, v, call):
            return "compute gradients"
        wide = max(q.shape[-1], v.shape[-1])
        if self.widest is not None and wide > self.widest:
            return f"handle heads of width {wide}"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One way to compute attention.

    Attributes:
        form: The form of the batch it works on; attention converts the other one.
        supports: What it can do, by type of device; a device not listed is not supported.
        suits: Whether it is worth choosing for a call it supports, unless forced.
    """

    run: Callable[[Queries, Keys, Values, Call], Answers]
    form: Literal["padded", "packed", "either"]
    supports: Mapping[str, Supports]
    suits: Callable[[Queries, Call], bool]

    def missing(self, q: Queries, k: Keys, v: Values, call: Call, weights: bool) -> str | None:
        """What it cannot do for this call; None if it supports the call."""
        declared = self.supports.get(q.device.type)
        if declared is None:
            return "run"
        return declared.missing(q, k, v, call, weights)


def everywhere(supports: Supports) -> dict[str, Supports]:
    """The same support on every type of device."""
    return dict.fromkeys(("cpu", "cuda", "mps"), supports)


def _is_plain_band(call: Call) -> bool:
    """Whether the mask is a band that a kernel can count from the end of each row."""
    return call.mask.band == (None, None) or (call.mask.band is not None and call.aligned)


def wants_gradient(q: Queries, k: Keys, v: Values, call: Call) -> bool:
    """Whether gradients will flow back from the answer."""
    tensors = [q, k, v] if call.bias is None else [q, k, v, call.bias.table]
    return torch.is_grad_enabled() and any(x.requires_grad for x in tensors)
