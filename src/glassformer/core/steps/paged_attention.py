"""Attention of the newest token of each row, to keys and values that lie in pages.

The token is written into its page, after those that the row already has. `reference` gathers the
pages and is the one to read; on CUDA a kernel reads them where they are (`paged_attention_kernel`).
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils._triton import has_triton

from glassformer.core.positions.rotary import Turns, rotated
from glassformer.core.scoring import capped


def has_kernel(device: torch.device) -> bool:
    """Whether there is a kernel for this device."""
    return device.type == "cuda" and has_triton()


def attention_on(device: torch.device) -> Callable[..., Tensor]:
    """The fastest way on this device, called as `reference`."""
    if not has_kernel(device):
        return reference
    from glassformer.core.steps.paged_attention_kernel import attend

    return attend


def reference(
    q: Float[Tensor, "B H K"],
    k: Float[Tensor, "B G K"],
    v: Float[Tensor, "B G W"],
    k_pages: Float[Tensor, "pages size G K"],
    v_pages: Float[Tensor, "pages size G W"],
    table: Int[Tensor, "B most"],
    positions: Int[Tensor, " B"],
    *,
    scale: float,
    softcap: float | None = None,
    window: int | None = None,
    turns: Turns | None = None,
) -> Float[Tensor, "B H W"]:
    """Write the newest keys and values into their pages, and attend to all of the row.

    Args:
        table: The pages of each row.
        positions: Of the newest tokens.
        window: How many tokens are seen, the newest included; None for all.
        turns: Cosines and sines of the positions, to rotate queries and keys by; None to leave
            them as they are.
    """
    q, k = rotated(q, turns), rotated(k, turns)
    size = k_pages.shape[1]
    page = table.gather(1, positions[:, None].long() // size)[:, 0]
    k_pages[page, positions % size], v_pages[page, positions % size] = k, v
    keys, values = (pages[table].flatten(1, 2).transpose(1, 2) for pages in (k_pages, v_pages))
    share = q.shape[1] // k.shape[1]
    keys, values = (x.repeat_interleave(share, dim=1) for x in (keys, values))  # (B, H, S, K)
    place = torch.arange(keys.shape[2], device=q.device)
    seen = place <= positions[:, None]
    if window is not None:
        seen &= place > positions[:, None] - window
    scores = capped(q[:, :, None] @ keys.mT * scale, softcap)  # (B, H, 1, S)
    weights = scores.masked_fill(~seen[:, None, None], -torch.inf).softmax(-1)
    values = values.masked_fill(~seen[:, None, :, None], 0)  # whatever stands there
    return (weights @ values)[:, :, 0]
