"""BranchingCache: several continuations of one prompt, without ever copying a key.

Each row has W branches. A token is written once, into a slot of its row, and stays there; all
branches of a row attend to the row's slots through a mask that shows each its own ancestors:

    row 0   slots   prompt prompt | a0 a1 | b0 b1 | c0 c1       W = 2, after three steps
            branch 0   #     #      #  .    .  #    #  .        tokens: a0 b1 c0
            branch 1   #     #      #  .    .  #    .  #        tokens: a0 b1 c1

When branches are reordered, only the lines of the mask move (`Ancestry`). A beam search that
reorders its branches at every step copies nothing else, and a prompt is stored once per row.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.core.bias import DistanceBias
from glassformer.core.caches.base import KeyCache, refuse_gradient
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, causal, everything
from glassformer.core.shapes import Keys, NewKeys, NewValues, Values


class Ancestry:
    """Which slots each branch sees, and the positions of their tokens.

    Everything is updated in place and on the device, so that a step can be captured as a graph.

    Args:
        prompt: The layout of the prompt, read before the first step; None without one.
        steps: The maximum number of steps.
        reach: No real token has this position or a later one.
        fixed: Whether every step attends to all slots, so that shapes stay the same.
    """

    def __init__(
        self,
        rows: int,
        branches: int,
        steps: int,
        *,
        prompt: Layout | None,
        reach: int,
        fixed: bool,
        device: torch.device,
    ) -> None:
        self.slots = branches * steps + (0 if prompt is None else prompt.longest)
        self.reach, self.fixed = reach, fixed
        self.seen: Bool[Tensor, "B W S"] = torch.zeros(
            rows, branches, self.slots, dtype=torch.bool, device=device
        )
        self.positions = torch.zeros(rows, self.slots, dtype=torch.long, device=device)
        self.lengths = torch.zeros(rows, dtype=torch.long, device=device)
        self.next = torch.arange(branches, device=device)
        self.even = is_even(branches, prompt)
        self.used = 0
        if prompt is not None:
            self._read(prompt)

    def restart(self, prompt: Layout | None) -> None:
        """Begin again after another prompt, with the same slots and addresses."""
        for tensor in (self.seen, self.positions, self.lengths):
            tensor.zero_()
        self.next.copy_(torch.arange(self.branches, device=self.next.device))
        self.used = 0
        if prompt is not None:
            self._read(prompt)

    def _read(self, prompt: Layout) -> None:
        self.used = prompt.longest
        self.next += self.used
        self.seen[:, :, : self.used] = prompt.real[:, None]
        self.positions[:, : self.used] = prompt.positions
        self.lengths.copy_(prompt.lengths)

    @property
    def branches(self) -> int:
        """Branches per row."""
        return self.seen.shape[1]

    @property
    def visible(self) -> int:
        """Number of slots to attend to."""
        return self.slots if self.fixed else self.used

    def place(self) -> Layout:
        """The layout of the newest token of every branch: one position per row, for all branches.

        A finished row may stay at its last position until it is removed.
        """
        newest = Layout.full(len(self.seen), 1, self.seen.device)
        return newest.shifted((self.lengths - 1).clamp(max=self.reach - 1), self.reach)

    def advance(self) -> None:
        """Open a slot for the next token of every branch."""
        rows, branches, _ = self.seen.shape
        own = self.next[None, :, None].expand(rows, branches, 1)
        self.seen.scatter_(2, own, True)
        self.positions.index_copy_(1, self.next, self.lengths[:, None].expand(rows, branches))
        self.lengths += 1
        self.next += branches
        self.used += branches

    def count(self) -> None:
        """The same if `even`, for attention that needs no table: everything so far is seen."""
        self.lengths += 1
        self.next += self.branches
        self.used += self.branches

    def table(self, mask: Mask) -> Bool[Tensor, "B 1 W S"] | None:
        """What each branch sees of its own past under a mask; None if it sees every slot."""
        whole = mask.band in (everything.band, causal.band)
        if whole and self.even and not self.fixed:
            return None
        seen = self.seen[:, None, :, : self.visible]
        if whole:
            return seen
        row = torch.arange(len(seen), device=seen.device)[:, None]
        sees = mask.rule(seen.device)
        near = sees(row, self.lengths[:, None] - 1, self.positions[:, : self.visible])  # (B, S)
        return seen & near[:, None, None]

    def scores(self, bias: DistanceBias) -> Float[Tensor, "b H w S"]:
        """The bias of each slot, by its position."""
        distance = self.positions[:, : self.visible] - self.lengths[:, None] + 1  # (B, S)
        entry = (distance - bias.low).clamp(0, bias.table.shape[-1] - 1)
        if bias.by_query:
            rows, heads, branches = bias.table.shape[:3]
            return bias.table.gather(-1, entry[:, None, None].expand(rows, heads, branches, -1))
        picked = bias.table.index_select(-1, entry.flatten())  # (H, B S)
        return picked.unflatten(-1, entry.shape).transpose(0, 1)[:, :, None]

    def branch(self, parents: Int[Tensor, "B W"]) -> None:
        """Continue every branch from a given branch of its row."""
        if self.branches > 1:
            self.seen.copy_(self.seen.gather(1, parents[..., None].expand(self.seen.shape)))

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Keep only these rows."""
        self.seen, self.positions = self.seen[rows], self.positions[rows]
        self.lengths = self.lengths[rows]


def is_even(branches: int, prompt: Layout | None) -> bool:
    """Whether every row sees all of its slots up to the newest token."""
    return branches == 1 and (prompt is None or prompt.is_full)


class BranchingCache(KeyCache):
    """The keys and values of one layer: `append` takes the prompt, `write` every step after it."""

    def __init__(self, slots: int, *, fixed: bool) -> None:
        self.slots, self.fixed = slots, fixed
        self.k: Float[Tensor, "B G S K"] | None = None
        self.v: Float[Tensor, "B G S W"] | None = None

    @staticmethod
    def empty(
        rows: int, slots: int, kv_heads: int, width: int, like: Float[Tensor, "..."]
    ) -> "BranchingCache":
        """One that is allocated already, of one width, and keeps its addresses."""
        cache = BranchingCache(slots, fixed=True)
        cache.k, cache.v = (like.new_zeros(rows, kv_heads, slots, width) for _ in "kv")
        return cache

    def place(self, layout: Layout) -> Layout:
        return layout

    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        """Store the prompt in the first slots of its row, padding included."""
        if self.k is not None or k.ndim != 4:
            raise ValueError(
                "a BranchingCache takes one prompt in padded rows, before the first step; "
                "make a new one for another"
            )
        self._allocate(k, v)
        self._put(torch.arange(k.shape[2], device=k.device), k, v)
        return k, v, layout

    def write(
        self, k: NewKeys, v: NewValues, ancestry: Ancestry
    ) -> tuple[Float[Tensor, "B G S K"], Float[Tensor, "B G S W"]]:
        """Write the newest token of every branch; returns all slots to attend to."""
        if self.k is None:
            self._allocate(k, v)
        size = k.shape[2]
        keys, values = self._put(ancestry.next - size, k, v)
        return keys[:, :, : ancestry.visible], values[:, :, : ancestry.visible]

    def keep(self, rows: Int[Tensor, " kept"], used: int) -> None:
        """Keep only these rows; only slots in use are copied."""
        if self.k is not None and self.v is not None:
            old_k, old_v = self.k, self.v
            self._allocate(old_k[: len(rows)], old_v[: len(rows)])
            self.k[:, :, :used], self.v[:, :, :used] = old_k[rows, :, :used], old_v[rows, :, :used]

    def _allocate(self, k: Tensor, v: Tensor) -> None:
        """Allocate slots for rows like these. What is never attended to need not be zero."""
        make = torch.zeros if self.fixed else torch.empty
        shapes = ((*x.shape[:2], self.slots, x.shape[-1]) for x in (k, v))
        self.k, self.v = (make(shape, dtype=k.dtype, device=k.device) for shape in shapes)

    def _put(self, at: Int[Tensor, " T"], k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        refuse_gradient("a BranchingCache", k, v)
        keys, values = self.kept()
        keys.index_copy_(2, at, k)
        values.index_copy_(2, at, v)
        return keys, values

    def kept(self) -> tuple[Float[Tensor, "B G S K"], Float[Tensor, "B G S W"]]:
        """All slots of a cache that is allocated."""
        assert self.k is not None
        assert self.v is not None
        return self.k, self.v
