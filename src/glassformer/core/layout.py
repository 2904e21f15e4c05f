"""Layout: which vector belongs to which sequence, and where it stands there.

A batch of sequences of different lengths can travel in two forms:

    padded  (B, T, ...)   one row a sequence, short rows filled up with padding
    packed  (N, ...)      all tokens end to end, nothing wasted

A `Layout` describes either. It is made once, with the batch, and passed along by keyword; every
part that looks along a sequence (attention, convolutions, pooling) reads lengths and positions from
it. `pad` and `pack` go from one form to the other. Padding may hold any finite numbers: stacks and
attention set it to zero first (`zero_padding`). The integers in it are known without
asking the device, so choosing a fast path never waits for a GPU.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.utils import _pytree as pytree

from glassformer.core.lengths import Lengths, checked_lengths, filler_lengths


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Layout:
    """Where every token of a batch lies and stands. Make one with `full`, `padded` or `packed`.

    Attributes:
        rows: How many sequences (B).
        longest: No row has more tokens than this; the width T of the padded form.
        reach: No token stands at this position or beyond.
        origin: No token stands before this position.
        tokens: How many there are in all, fillers included; None when only the device knows.
        device: Where the tensors below live.
        row_lengths: (B,) tokens in each row, or None when every row has `longest`.
        starts: (B,) position of each row's first token; (1,) when all agree, None when it is 0.
        offsets: (B + 1,) where each row begins in the pack, and the total; None when padded.
        row_of: (N,) the row of each packed token; None when padded.
        fillers: (B,) True for rows that only fill a batch up to its shape; None without any.
        memo: What parts of a model have worked out for this batch, kept for the layers to come.
    """

    rows: int
    longest: int
    reach: int
    tokens: int | None
    device: torch.device
    row_lengths: Int[Tensor, " B"] | None = None
    starts: Int[Tensor, " b"] | None = None
    offsets: Int[Tensor, " bounds"] | None = None
    row_of: Int[Tensor, " N"] | None = None
    fillers: Bool[Tensor, " B"] | None = None
    origin: int = 0
    memo: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @staticmethod
    def full(rows: int, length: int, device: torch.device | str | None = None) -> "Layout":
        """`rows` sequences of `length` tokens each: no padding anywhere."""
        device = torch.device(device or "cpu")
        tokens = rows * length
        return Layout(rows=rows, longest=length, reach=length, tokens=tokens, device=device)

    @staticmethod
    def padded(
        lengths: Lengths, *, longest: int | None = None, device: torch.device | str | None = None
    ) -> "Layout":
        """Rows of these lengths, each filled up to `longest` (by default, the longest of them)."""
        row_lengths, longest, tokens = checked_lengths(lengths, longest)
        row_lengths = row_lengths.to(device or row_lengths.device, non_blocking=True)
        return Layout(
            rows=len(row_lengths),
            longest=longest,
            reach=longest,
            tokens=tokens,
            device=row_lengths.device,
            row_lengths=row_lengths,
        )

    @staticmethod
    def packed(
        lengths: Lengths,
        *,
        longest: int | None = None,
        budget: int | None = None,
        rows: int | None = None,
        device: torch.device | str | None = None,
    ) -> "Layout":
        """Rows of these lengths, end to end. Lengths on a GPU are waited for.

        Args:
            budget: Fill up to this many tokens with filler rows of at most `longest` tokens.
            rows: With a budget, fill up to this many rows too, so that with `longest` given,
                batches of different content have one shape.
        """
        if isinstance(lengths, Tensor):
            device, lengths = device or lengths.device, lengths.cpu()
        given, longest, tokens = checked_lengths(lengths, longest)
        assert tokens is not None  # counted on the CPU
        fillers = filler_lengths(len(given), tokens, longest, budget, rows)
        layout = Layout.padded(torch.cat([given, fillers]), longest=longest, device=device)
        if not len(fillers):
            return layout.as_packed()
        of_fillers = torch.arange(layout.rows, device=layout.device) >= len(given)
        return replace(layout.as_packed(), fillers=of_fillers)

    @property
    def is_packed(self) -> bool:
        """Whether tokens lie end to end rather than in padded rows."""
        return self.offsets is not None

    @property
    def bounds(self) -> Int[Tensor, " bounds"]:
        """Where each row begins in the pack, and the total."""
        if self.offsets is None:
            raise ValueError("a padded layout has no bounds in a pack; call .as_packed() first")
        return self.offsets

    @property
    def is_full(self) -> bool:
        """Whether every row certainly has `longest` tokens."""
        return self.row_lengths is None

    @property
    def lengths(self) -> Int[Tensor, " B"]:
        """How many tokens each row has."""
        if self.row_lengths is not None:
            return self.row_lengths
        return torch.full((self.rows,), self.longest, device=self.device)

    @property
    def ends(self) -> Int[Tensor, " B"]:
        """The position after each row's last token."""
        return self.lengths if self.starts is None else self.starts + self.lengths

    @property
    def positions(self) -> Int[Tensor, "b T"] | Int[Tensor, " N"]:
        """Where each token stands in its sequence; `b` is 1 when all padded rows agree."""
        if self.row_of is None:
            steps = torch.arange(self.longest, device=self.device)[None]  # (1, T)
            return steps if self.starts is None else steps + self.starts[:, None]  # (B, T)
        first = self.bounds[:-1]
        if self.starts is not None:
            first = first - self.starts
        return torch.arange(len(self.row_of), device=self.device) - first[self.row_of]

    @property
    def real(self) -> Bool[Tensor, "b T"] | Bool[Tensor, " N"]:
        """True where a token is, False in padding and filler rows."""
        if self.row_of is not None:
            return self.row_of >= 0 if self.fillers is None else ~self.fillers[self.row_of]
        steps = torch.arange(self.longest, device=self.device)[None]  # (1, T)
        real = steps < self.lengths[:, None]  # (B, T)
        return real if self.fillers is None else real & ~self.fillers[:, None]

    def shifted(self, starts: Int[Tensor, " b"], reach: int, origin: int = 0) -> "Layout":
        """The same tokens, each row beginning at its own position, within origin ... reach."""
        if len(starts) not in (1, self.rows):
            raise ValueError(
                f"got {len(starts)} starts for {self.rows} rows; give one a row, or one for all"
            )
        return replace(self, starts=starts, reach=reach, origin=origin)

    def fits(self, room: int) -> bool:
        """Whether every token stands below `room`, wherever padding and fillers stand.

        `reach` mostly settles it; where it does not, a GPU is waited for. While a graph is made,
        nobody can wait: the check becomes part of it.
        """
        if self.reach <= room:
            return True
        if self.is_full and self.starts is None:
            return False
        ends = self.ends if self.fillers is None else self.ends.masked_fill(self.fillers, 0)
        inside = (ends <= room).all()
        if torch.compiler.is_compiling() or _is_captured(inside):
            torch._assert_async(inside, f"a token stands beyond the last of {room} positions")
            return True
        return bool(inside)

    def to(self, device: torch.device | str) -> "Layout":
        """The same layout with its tensors on another device."""
        return replace(
            self,
            device=torch.device(device),
            row_lengths=_moved(self.row_lengths, device),
            starts=_moved(self.starts, device),
            offsets=_moved(self.offsets, device),
            row_of=_moved(self.row_of, device),
            fillers=_moved(self.fillers, device),
        )

    def twice(self) -> "Layout":
        """The same rows again after themselves: the layout of a batch and its copy in one."""
        offsets, row_of, starts = self.offsets, self.row_of, self.starts
        if offsets is not None and row_of is not None:
            offsets = torch.cat([offsets, offsets[1:] + offsets[-1]])
            row_of = torch.cat([row_of, row_of + self.rows])
        return replace(
            self,
            rows=2 * self.rows,
            tokens=None if self.tokens is None else 2 * self.tokens,
            row_lengths=_repeated(self.row_lengths),
            starts=starts if starts is None or len(starts) == 1 else _repeated(starts),
            offsets=offsets,
            row_of=row_of,
            fillers=_repeated(self.fillers),
        )

    def as_padded(self) -> "Layout":
        """The layout of the same batch in padded form."""
        return replace(self, offsets=None, row_of=None)

    def as_packed(self) -> "Layout":
        """The layout of the same batch in packed form. Waits for a GPU only to count tokens."""
        if self.is_packed:
            return self
        lengths, tokens = self.lengths, self.tokens
        tokens = int(lengths.sum()) if tokens is None else tokens
        rows = torch.arange(self.rows, device=self.device)
        return replace(
            self,
            tokens=tokens,
            row_lengths=lengths,
            offsets=F.pad(lengths.cumsum(0), (1, 0)).int(),  # as flash kernels want it
            row_of=rows.repeat_interleave(lengths, output_size=tokens),
        )


def pad(x: Shaped[Tensor, "N ..."], layout: Layout) -> Shaped[Tensor, "B T ..."]:
    """From packed to padded, zeros in the padding."""
    slots = layout.rows * layout.longest
    padded = x.new_zeros(slots, *x.shape[1:]).index_copy(0, _slots(layout), x)
    return padded.unflatten(0, (layout.rows, layout.longest))  # (B, T, ...)


def pack(x: Shaped[Tensor, "B T ..."], layout: Layout) -> Shaped[Tensor, "N ..."]:
    """From padded to packed, leaving the padding behind."""
    _refuse_other_width((x.shape[0], x.shape[1]), layout)
    return x.flatten(0, 1).index_select(0, _slots(layout))


def zero_padding(
    x: Shaped[Tensor, "*form"], layout: Layout, *, axis: int = 1
) -> Shaped[Tensor, "*form"]:
    """Zeros in the padding, whatever stood there; `axis` is that of the tokens.

    A pack has none: its fillers are rows of their own.
    """
    if layout.is_full or layout.is_packed:
        return x
    _refuse_other_width((x.shape[0], x.shape[axis]), layout)
    shape = [1] * x.ndim
    shape[0], shape[axis] = layout.rows, layout.longest
    return x.masked_fill(~layout.real.view(shape), 0)


def _refuse_other_width(shape: tuple[int, int], layout: Layout) -> None:
    """A padded batch of another shape: its places would belong to other rows."""
    if shape != (layout.rows, layout.longest):
        raise ValueError(
            f"the batch holds {shape} tokens, but its layout describes "
            f"{(layout.rows, layout.longest)}; make the layout from this batch, with its width as "
            f"`longest`"
        )


def _slots(layout: Layout) -> Int[Tensor, " N"]:
    """Where each packed token lies in the flattened padded form."""
    gaps = torch.arange(layout.rows, device=layout.device) * layout.longest - layout.bounds[:-1]
    assert layout.row_of is not None  # a layout with bounds has it
    return torch.arange(len(layout.row_of), device=layout.device) + gaps[layout.row_of]


def _is_captured(x: Tensor) -> bool:
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def _repeated(x: Tensor | None) -> Tensor | None:
    return x if x is None else torch.cat([x, x])


def _moved(x: Tensor | None, device: torch.device | str) -> Tensor | None:
    return x if x is None else x.to(device, non_blocking=True)


_TENSORS = ("row_lengths", "starts", "offsets", "row_of", "fillers")
_FACTS = ("rows", "longest", "reach", "tokens", "device", "origin")

pytree.register_pytree_node(
    Layout,
    lambda layout: ([getattr(layout, n) for n in _TENSORS], [getattr(layout, n) for n in _FACTS]),
    lambda tensors, facts: Layout(
        **dict(zip(_TENSORS, tensors, strict=True)), **dict(zip(_FACTS, facts, strict=True))
    ),
    serialized_type_name="glassformer.core.layout.Layout",
)
