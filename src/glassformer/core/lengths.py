"""How long the rows of a batch are, checked once before a layout is made of it."""

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor

Lengths = Sequence[int] | Int[Tensor, " B"]


def checked_lengths(
    lengths: Lengths, longest: int | None
) -> tuple[Int[Tensor, " B"], int, int | None]:
    """Lengths as a tensor, their bound and their sum. Values are read only where none waits."""
    if isinstance(lengths, Tensor) and lengths.device.type != "cpu":
        if longest is None:
            raise ValueError(
                "lengths on a GPU need `longest`, so that nothing waits for the device"
            )
        return lengths, longest, None
    values = torch.as_tensor(lengths, dtype=torch.long)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"lengths must be one number a row, got shape {tuple(values.shape)}")
    low, high = int(values.min()), int(values.max())
    if low < 0:
        raise ValueError(f"lengths must be 0 or more, got {low}")
    if longest is not None and high > longest:
        raise ValueError(
            f"a row has {high} tokens, but the batch is only {longest} long; "
            f"shorten the row or widen the batch"
        )
    return values, high if longest is None else longest, int(values.sum())


def filler_lengths(
    given: int, tokens: int, longest: int, budget: int | None, rows: int | None
) -> Int[Tensor, " fillers"]:
    """Lengths of the filler rows that bring a pack up to the budget, and to so many rows.

    Args:
        given: How many rows there are without them.
        tokens: How many tokens these have.
    """
    if budget is None:
        if rows is not None:
            raise ValueError(f"rows = {rows} needs a budget to fill; give both or neither")
        return torch.zeros(0, dtype=torch.long)
    spare = budget - tokens
    if spare < 0:
        raise ValueError(
            f"{tokens} tokens do not fit a budget of {budget}; "
            f"raise the budget or drop {-spare} tokens"
        )
    if spare and not longest:
        raise ValueError(f"{spare} filler tokens need rows of at least 1; give a `longest`")
    whole, rest = divmod(spare, max(longest, 1))
    needed = given + whole + (rest > 0)
    if rows is None:
        return torch.tensor([longest] * whole + [rest] * (rest > 0), dtype=torch.long)
    if needed > rows:
        raise ValueError(
            f"{given} rows and {needed - given} to fill the budget make {needed}, "
            f"but only {rows} were requested; raise `rows` or lower the budget"
        )
    fillers = rows - given
    each, more = divmod(spare, max(fillers, 1))  # short rows cost attention the least
    return torch.full((fillers,), each) + (torch.arange(fillers) < more)
