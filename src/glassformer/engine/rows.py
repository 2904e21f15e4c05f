"""Rows: on a CPU, the keys and values of running requests lie end to end.

Gathering pages would copy all of them in every step. Here they are copied from their pages when a
request's prompt was read, and back when it leaves; in between, a step copies only what is new.
While all requests have read as many tokens, steps are those of the decoding loop (`EvenSteps`).
"""

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.core.caches import KeyCache, Memory, PagePool
from glassformer.core.layout import Layout
from glassformer.core.positions.rotary import Rotary
from glassformer.core.scoring import capped
from glassformer.core.shapes import Keys, NewKeys, NewValues, Values
from glassformer.core.steps.attention import Rotation
from glassformer.engine.fused_step import embedded, fused_scores
from glassformer.engine.generation import Branch
from glassformer.engine.paged_decoder import PagedDecoder
from glassformer.engine.steps import BranchingSteps
from glassformer.models.incremental.even import EvenSteps, KeysAndValues
from glassformer.models.incremental.fused import FusedModel
from glassformer.models.transformer import scored

MORE = 2  # times the room when it is full


class RowSteps(BranchingSteps):
    """Steps over rows; the rows of running requests are the first ones."""

    def __init__(self, decoder: PagedDecoder) -> None:
        super().__init__(decoder)
        self.rows: list[Branch] = []
        self.past = Rows(decoder.pool)
        self.memory = None if decoder.sources is None else Rows(decoder.sources)
        self.rotation: Rotation | None = None
        self.even: EvenSteps | None = None  # of these rows

    def join(self, branches: Sequence[Branch], tokens: Int[Tensor, " B"]) -> None:
        super().join(branches, tokens)
        first, self.even = len(self.rows), None
        self.rows += branches
        self.past.make_room(len(self.rows), max(one.most_tokens for one in branches))
        for row, one in enumerate(branches, first):
            self.past.load(row, one.sequence)
        if self.memory is not None:
            longest = max(self.memory.pool.length(one.source) for one in branches)
            self.memory.make_room(len(self.rows), longest)
            for row, one in enumerate(branches, first):
                self.memory.load(row, one.source)

    def leave(self, branch: Branch) -> None:
        """Its row is filled with the last one."""
        super().leave(branch)
        if branch not in self.rows:
            return
        self.even = None
        row, last = self.rows.index(branch), len(self.rows) - 1
        if not branch.cancelled:
            self.past.store(row, branch.sequence, branch.read)
        moved = self.rows.pop()
        self.past.move(last, row, moved.read)
        if self.memory is not None:
            self.memory.move(last, row, self.memory.lengths[last])
        if row != last:
            self.rows[row] = moved

    def reorder(self, branches: Sequence[Branch], parents: Sequence[int]) -> None:
        row_of = {one.number: row for row, one in enumerate(self.rows)}
        rows = [row_of[one.number] for one in branches]
        moved = [at for at, parent in enumerate(parents) if at != parent]
        if moved:
            targets, sources = [rows[at] for at in moved], [rows[parents[at]] for at in moved]
            self.past.copy(sources, targets, branches[0].read)

    def due(self) -> list[Branch]:
        return list(self.rows)

    @torch.no_grad()
    def scores(self, due: Sequence[Branch]) -> Float[Tensor, "B V"]:
        read, fused = [one.read for one in due], self.decoder.fused
        longest, starts = max(read) + 1, torch.tensor(read)
        at = Layout(
            rows=len(due),
            longest=1,
            reach=longest,
            tokens=len(due),
            device=starts.device,
            starts=starts,
        )
        tokens = torch.tensor([one.tokens[-1] for one in due])
        for one in due:
            one.read += 1
        even = min(read) + 1 == longest
        if even and fused is not None:
            return self._together(fused, tokens, at)
        keys = Layout.full(len(due), longest) if even else Layout.padded(starts + 1)
        every = torch.arange(len(due))
        caches = [RowCache(k, v, every, keys) for k, v in self.past.of_layers(len(due))]
        if fused is None:
            return self._plain(tokens, at, caches)
        seen = keys.real[:, None, None]  # (B, 1, 1, S)
        rotation = self._rotation(fused)
        if rotation is not None:
            rotation = rotation.at(starts)
        attend = partial(attend_heads, fused, caches, at, seen, rotation)
        return fused_scores(fused, tokens, at, attend)

    def _together(
        self, fused: FusedModel, tokens: Int[Tensor, " B"], at: Layout
    ) -> Float[Tensor, "B V"]:
        """A step of rows that are all at one place."""
        if self.even is None:
            past = self.past.of_layers(len(tokens))
            self.even = EvenSteps(fused.layers, past, self._rotation(fused))
        x = self.even(embedded(fused, tokens, at), at.reach - 1)
        return capped(fused.head(x), fused.softcap)

    def _rotation(self, fused: FusedModel) -> Rotation | None:
        """How queries and keys are rotated; the table grows with the longest row."""
        if not isinstance(fused.position, Rotary):
            return None
        room = self.past.k.shape[3]
        if self.rotation is None or len(self.rotation.cos) < room:
            self.rotation = Rotation.of(fused.position, room, self.past.k.device)
        return self.rotation

    def _plain(
        self, tokens: Int[Tensor, " B"], at: Layout, caches: "Sequence[RowCache]"
    ) -> Float[Tensor, "B V"]:
        """A step of the modules of the model."""
        decoder = self.decoder
        x, _ = decoder.tokens(tokens[:, None], at)
        memory = None if self.memory is None else self.memory.memories(len(tokens))
        x = decoder.decoder(x, layout=at, memory=memory, caches=caches)  # (B, 1, D)
        return scored(x[:, 0], decoder.tokens, decoder.unembed)


class Rows:
    """The keys and values of some sequences of a pool, a row each."""

    def __init__(self, pool: PagePool) -> None:
        self.pool = pool
        layers, _, _, heads, width = pool.k.shape
        self.k = pool.k.new_zeros(layers, 0, heads, 0, width)  # (layers, rows, G, S, K)
        self.v = pool.v.new_zeros(layers, 0, heads, 0, pool.v.shape[-1])
        self.lengths: list[int] = []  # at the time they were loaded

    def load(self, row: int, sequence: int) -> None:
        """Put a sequence into a row."""
        k, v = self.pool.load(sequence)
        length = k.shape[1]
        for rows, new in ((self.k, k), (self.v, v)):
            rows[:, row, :, :length] = new.transpose(1, 2)
            rows[:, row, :, length:] = 0  # clears what the last one left, NaN above all
        self.lengths[row:] = [length]

    def store(self, row: int, sequence: int, length: int) -> None:
        """Bring back into pages what was added to a row."""
        new = slice(self.pool.length(sequence), length)
        k, v = self.k[:, row, :, new], self.v[:, row, :, new]
        self.pool.store(sequence, k.transpose(1, 2), v.transpose(1, 2))

    def move(self, last: int, row: int, length: int) -> None:
        """Fill a row with the last one, which has so many tokens."""
        if row != last:
            for rows in (self.k, self.v):
                rows[:, row, :, :length] = rows[:, last, :, :length]
                rows[:, row, :, length:] = 0
            self.lengths[row] = self.lengths[last]
        self.lengths.pop()

    def copy(self, sources: list[int], targets: list[int], length: int) -> None:
        """Put the first tokens of some rows into others."""
        for rows in (self.k, self.v):
            rows[:, targets, :, :length] = rows[:, sources, :, :length]

    def of_layers(self, rows: int) -> list[KeysAndValues]:
        """What the first rows hold in each layer, with room for more."""
        return list(zip(self.k[:, :rows], self.v[:, :rows], strict=True))

    def memories(self, rows: int) -> list[Memory]:
        """What the first rows hold, as the memory of each layer."""
        layout = Layout.padded(self.lengths)
        keys, values = (held[:, :rows, :, : layout.longest] for held in (self.k, self.v))
        return [Memory(k, v, layout) for k, v in zip(keys, values, strict=True)]

    def make_room(self, rows: int, length: int) -> None:
        """Have room for so many rows of this length."""
        _, held, _, longest, _ = self.k.shape
        if rows <= held and length <= longest:
            return
        rows = held if rows <= held else max(rows, MORE * held)
        length = longest if length <= longest else max(length, MORE * longest)
        for name in ("k", "v"):
            old = getattr(self, name)
            layers, _, heads, _, width = old.shape
            new = old.new_empty(layers, rows, heads, length, width)  # `load` clears the rest
            new[:, :held, :, :longest], new[:, :held, :, longest:] = old, 0
            setattr(self, name, new)


class RowCache(KeyCache):
    """A layer of the first rows, as the cache of one step."""

    def __init__(
        self,
        k: Float[Tensor, "B G room K"],
        v: Float[Tensor, "B G room W"],
        every: Int[Tensor, " B"],
        keys: Layout,
    ) -> None:
        self.k, self.v, self.every, self.keys = k, v, every, keys

    def place(self, layout: Layout) -> Layout:
        return layout

    def append(self, k: NewKeys, v: NewValues, layout: Layout) -> tuple[Keys, Values, Layout]:
        """Write the newest token of every row; returns all of them."""
        longest = self.keys.longest
        if self.keys.is_full:
            self.k[:, :, longest - 1 : longest], self.v[:, :, longest - 1 : longest] = k, v
        else:
            self.k[self.every, :, layout.starts] = k[:, :, 0]
            self.v[self.every, :, layout.starts] = v[:, :, 0]
        return self.k[:, :, :longest], self.v[:, :, :longest], self.keys


def attend_heads(
    fused: FusedModel,
    caches: Sequence[RowCache],
    at: Layout,
    seen: Bool[Tensor, "B 1 1 S"],
    rotation: Rotation | None,
    number: int,
    heads: Float[Tensor, "B HGG K"],
) -> Float[Tensor, "B H K"]:
    """Self-attention of the newest tokens, of a model laid out for steps."""
    shape = fused.layers[number].attention
    both, heads = shape.heads + shape.kv_heads, heads[:, :, None]  # (B, H + 2 G, 1, K)
    qk = heads[:, :both] if rotation is None else rotation.turned(heads[:, :both])
    keys, values, _ = caches[number].append(qk[:, shape.heads :], heads[:, both:], at)
    answer = F.scaled_dot_product_attention(
        qk[:, : shape.heads],
        keys,
        values,
        attn_mask=seen,
        scale=shape.scale,
        enable_gqa=shape.heads != shape.kv_heads,
    )
    return answer[:, :, 0]
