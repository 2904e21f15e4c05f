"""PagedSteps: on CUDA, steps read the pages themselves and are replayed as graphs.

What a step needs lies on the device, in a slot of each request: its newest token, its position and
its pages. The host only says which slots take part, and only when that changes. A graph is captured
for each of a few numbers of rows; the rows that are left over fill a spare slot.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches.paged import to_device
from glassformer.core.cuda_graphs import recording, side_stream
from glassformer.core.layout import Layout
from glassformer.core.positions import Position
from glassformer.core.positions.rotary import Turns
from glassformer.core.steps.paged_attention import attention_on, has_kernel
from glassformer.engine.fused_step import fused_scores, turns_at
from glassformer.engine.generation import Branch
from glassformer.engine.paged_decoder import PagedDecoder
from glassformer.engine.steps import Steps
from glassformer.models.incremental.fused import FusedModel
from glassformer.models.transformer import scored


class PagedSteps(Steps):
    """Steps over slots.

    Args:
        rows: The number of slots.
    """

    late = 1

    def __init__(self, decoder: PagedDecoder, *, rows: int) -> None:
        super().__init__(decoder)
        pool, device = decoder.pool, decoder.device
        self.longest = min(pool.pages * pool.page_size, decoder.positions or 2**30)
        width = pool.pages_for(self.longest)
        self.free, self.slots = list(range(rows - 1, -1, -1)), dict[int, int]()
        self.tokens = torch.zeros(rows + 1, dtype=torch.long, device=device)
        self.positions = torch.zeros_like(self.tokens)
        self.table = torch.full((rows + 1, width), pool.pages, dtype=torch.int32, device=device)
        self.attend = attention_on(device)
        self.graphs: dict[int, StepGraph] = {}
        self.memory_of_graphs = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
        self._last: list[int] = []  # who took part in the last step
        self._at = torch.zeros(0, dtype=torch.long, device=device)  # their slots

    def join(self, branches: Sequence[Branch], tokens: Int[Tensor, " B"]) -> None:
        super().join(branches, tokens)
        pages = [self.decoder.pool.pages_of(one.sequence) for one in branches]
        slots, spare = [self.free.pop() for _ in branches], self.decoder.pool.pages
        self.slots |= {one.number: slot for one, slot in zip(branches, slots, strict=True)}
        longest = max(map(len, pages))
        lines = [
            [slot, one.read, *held, *[spare] * (longest - len(held))]
            for one, slot, held in zip(branches, slots, pages, strict=True)
        ]
        known = to_device(lines, self.decoder.device)
        self.tokens[known[:, 0]] = tokens.clamp(min=0)
        self.positions[known[:, 0]] = known[:, 1]
        self.table[known[:, 0], :longest] = known[:, 2:].int()

    def leave(self, branch: Branch) -> None:
        super().leave(branch)
        if (slot := self.slots.pop(branch.number, None)) is not None:
            self.free.append(slot)
            pool = self.decoder.pool
            pool.advance(branch.sequence, branch.read - pool.length(branch.sequence))

    @torch.no_grad()
    def scores(self, due: Sequence[Branch]) -> Float[Tensor, "B V"]:
        size = 1 << (len(due) - 1).bit_length()
        numbers = [one.number for one in due]
        if size not in self.graphs:
            self.graphs[size] = StepGraph(size, self)
        graph = self.graphs[size]
        if numbers != self._last:
            spare = len(self.tokens) - 1
            slots = [self.slots[number] for number in numbers]
            filled = to_device(slots + [spare] * (size - len(slots)), self.decoder.device)
            self._last, self._at = numbers, filled[: len(slots)]
            graph.slots.copy_(filled)
        for one in due:
            one.read += 1
        return graph()[: len(due)]

    def put(self, due: Sequence[Branch], tokens: Int[Tensor, " B"]) -> None:
        self.tokens[self._at] = tokens.clamp(min=0)

    def score(self, slots: Int[Tensor, " rows"]) -> Float[Tensor, "rows V"]:
        """A step of these slots: nothing in it depends on the host."""
        positions, table = self.positions[slots], self.table[slots]
        at = Layout.full(len(slots), 1, slots.device).shifted(positions, self.longest)
        fused = self.decoder.fused
        if fused is None:
            scores = self._plain(self.tokens[slots], table, at)
        else:
            turns = turns_at(fused, positions)
            attend = partial(self._attend_heads, fused, table, positions, turns)
            scores = fused_scores(fused, self.tokens[slots], at, attend)
        self.positions[slots] = positions + 1
        self.positions[-1:] = 0  # of the spare slot
        return scores

    def _attend_heads(
        self,
        fused: FusedModel,
        table: Int[Tensor, "rows pages"],
        positions: Int[Tensor, " rows"],
        turns: Turns | None,
        number: int,
        heads: Float[Tensor, "rows HGG K"],
    ) -> Float[Tensor, "rows H K"]:
        """Self-attention of the newest tokens, of a model laid out for steps."""
        shape, pool = fused.layers[number].attention, self.decoder.pool
        q, k, v = heads.split([shape.heads, shape.kv_heads, shape.kv_heads], dim=1)
        pages = pool.k[number], pool.v[number]
        return self.attend(q, k, v, *pages, table, positions, scale=shape.scale, turns=turns)

    def _plain(
        self, tokens: Int[Tensor, " rows"], table: Int[Tensor, "rows pages"], at: Layout
    ) -> Float[Tensor, "rows V"]:
        """A step of the modules of the model."""
        rows = Layout.full(len(tokens), 1, tokens.device)
        x, _ = self.decoder.tokens(tokens[:, None], rows)  # (rows, 1, D)
        attend = partial(self._attend, table, at)
        x = self.decoder.decoder.step(x, attend, at=at, layout=rows)
        return scored(x[:, 0], self.decoder.tokens, self.decoder.unembed)

    def _attend(
        self,
        table: Int[Tensor, "rows pages"],
        at: Layout,
        number: int,
        layer: MultiHeadAttention,
        x: Float[Tensor, "rows 1 D"],
    ) -> Float[Tensor, "rows 1 D"]:
        """Self-attention of the newest tokens."""
        assert at.starts is not None
        q, (k, v) = layer.queries(x), layer.keys_and_values(x)
        q, k = self.decoder.decoder.position.turn(q, k, at)
        pool, scoring = self.decoder.pool, layer.scoring
        answer = self.attend(
            q[:, :, 0],
            k[:, :, 0],
            v[:, :, 0],
            pool.k[number],
            pool.v[number],
            table,
            at.starts,
            scale=layer.key_width**-0.5 if scoring.scale is None else scoring.scale,
            softcap=scoring.softcap,
            window=None if layer.window is None else layer.window.size,
        )
        return layer.project_out(answer[:, :, None])


class StepGraph:
    """A step of so many rows, captured when it is first used."""

    def __init__(self, rows: int, steps: PagedSteps) -> None:
        self.steps = steps
        spare = len(steps.tokens) - 1
        self.slots = torch.full((rows,), spare, device=steps.decoder.device)
        self.graph: torch.cuda.CUDAGraph | None = None
        if self.slots.is_cuda:
            self.graph = torch.cuda.CUDAGraph()
            with own_autocast(fused=steps.decoder.fused is not None):
                with side_stream():
                    steps.score(self.slots)  # libraries initialise before the capture
                with side_stream(), recording(self.graph, steps.memory_of_graphs):
                    self.scores = steps.score(self.slots)

    def __call__(self) -> Float[Tensor, "rows V"]:
        """The scores; overwritten by the next step."""
        if self.graph is None:
            return self.steps.score(self.slots)
        self.graph.replay()
        return self.scores


def own_autocast(*, fused: bool) -> AbstractContextManager[None]:
    """Autocast for a graph, which outlives that around it and must not use its copies of weights.

    Args:
        fused: Whether weights have the right type already.
    """
    return torch.autocast(
        "cuda",
        torch.get_autocast_dtype("cuda"),
        enabled=torch.is_autocast_enabled("cuda") and not fused,
        cache_enabled=False,
    )


def supports(decoder: PagedDecoder) -> bool:
    """Whether this decoder can run so: a language model, without a bias in its scores."""
    unbiased = type(decoder.decoder.position).bias is Position.bias
    return decoder.sources is None and unbiased and has_kernel(decoder.device)
