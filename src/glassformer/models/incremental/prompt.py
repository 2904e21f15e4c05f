"""What exists before the first step: an encoded source, or a prompt."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor, nn

from glassformer.core.caches import Memory
from glassformer.core.kernels.forms import padded
from glassformer.core.layout import Layout, pack
from glassformer.core.positions.absolute import Learned

MUCH_PADDING = 0.15  # on a CPU, reading packed rows is faster from this share of padding on


@dataclass(frozen=True, eq=False, slots=True)
class Prompt:
    """The prompts, read before the first step, in padded rows."""

    tokens: Int[Tensor, "B P"]
    layout: Layout

    @staticmethod
    def of(prompts: Sequence[Sequence[int]], device: torch.device) -> "Prompt | None":
        """These prompts; None if all are empty."""
        lengths = [len(prompt) for prompt in prompts]
        longest = max(lengths)
        if not longest:
            return None
        lines = [[*prompt, *[0] * (longest - len(prompt))] for prompt in prompts]
        even = min(lengths) == longest
        return Prompt(
            torch.tensor(lines, device=device),
            Layout.full(len(lines), longest, device)
            if even
            else Layout.padded(lengths, device=device),
        )


def max_positions(decoder: nn.Module) -> int | None:
    """How many positions a decoder supports; None for any number."""
    position = getattr(decoder, "position", None)
    return position.max_length if isinstance(position, Learned) else None


def room_after(prompt: Prompt | None, decoder: nn.Module, rows: int) -> Sequence[int] | None:
    """How many tokens a decoder can generate in each row after its prompt; None for any number."""
    limit = max_positions(decoder)
    if limit is None:
        return None
    lengths = [0] * rows if prompt is None else prompt.layout.lengths.tolist()
    return [limit - length for length in lengths]


def reach_after(prompt: Prompt | None, decoder: nn.Module, steps: int) -> int:
    """One past the last position that these steps can reach."""
    reach = steps + (0 if prompt is None else prompt.layout.longest)
    return min(reach, max_positions(decoder) or reach)


def without_padding(tokens: Tensor, layout: Layout) -> tuple[Tensor, Layout]:
    """Packed where that is faster; on CUDA, stacks pack their input themselves."""
    if layout.is_packed or layout.tokens is None or layout.device.type != "cpu":
        return tokens, layout
    if layout.tokens > (1 - MUCH_PADDING) * layout.rows * layout.longest:
        return tokens, layout
    layout = layout.as_packed()
    return pack(tokens, layout), layout


def in_rows(memory: Memory) -> Memory:
    """The same memory in padded rows."""
    layout = memory.layout
    return Memory(padded(memory.k, layout), padded(memory.v, layout), layout.as_padded())


def chosen_rows(memory: Memory, rows: Int[Tensor, " chosen"]) -> Memory:
    """The memory of these rows, in this order."""
    return Memory(memory.k[rows], memory.v[rows], rows_of(memory.layout, rows))


def rows_of(layout: Layout, rows: Int[Tensor, " chosen"]) -> Layout:
    """The layout of these rows of a padded batch, in this order."""
    lengths = None if layout.is_full else layout.lengths[rows]
    return replace(layout, rows=len(rows), tokens=None, row_lengths=lengths)
