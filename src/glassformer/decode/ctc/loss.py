"""The CTC loss, with the same bits every time on any device. Graves et al., 2006.

A text of n tokens is read by 2n + 1 states: its tokens, with blanks around them. With e[t, s] the
log-probability of state s in frame t,

    before[t, s]  = e[t, s] + log(sum of exp before[t-1] over s, s-1 and, if it may be skipped, s-2)
    after[t, s]     the same from the end, backwards
    share[t, s]   = exp(before + after - e - log p(text))
    dloss / dlog_probs[t, token]  = - the shares of its states

Backwards is forwards over reversed rows, so both are one loop over frames, for all rows at once.
`torch.nn.functional.ctc_loss` takes one kernel for it, which adds up gradients in any order.
"""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from glassformer.decode.ctc.alignment import moved


def deterministic_ctc_loss(
    log_probs: Float[Tensor, "B T V"],
    labels: Int[Tensor, "B L"],
    lengths: Int[Tensor, " B"],
    counts: Int[Tensor, " B"],
    *,
    blank: int,
) -> Float[Tensor, " B"]:
    """The negative log-probability of each text, summed over its paths.

    Args:
        labels: The tokens of each text, padded with any tokens.
        lengths: Frames of each row.
        counts: Tokens of each text.
    """
    return _Ctc.apply(log_probs, labels, lengths, counts, blank)


class _Ctc(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, log_probs: Tensor, labels: Tensor, lengths: Tensor, counts: Tensor, blank: int
    ) -> Tensor:
        states = F.pad(labels, (0, 1), value=blank).repeat_interleave(2, 1)[:, :-1]
        states[:, 0::2] = blank  # (B, S)
        steps, places = _numbers(log_probs.shape[1], log_probs), _numbers(states.shape[1], states)
        ends, sizes = lengths[:, None], 2 * counts[:, None] + 1
        inside = (steps < ends)[:, :, None] & (places < sizes)[:, None]  # (B, T, S)
        each = log_probs.gather(2, states[:, None].expand_as(inside))
        each = each.masked_fill(~inside, -torch.inf)
        skips = F.pad((states[:, 2:] != states[:, :-2]) & (states[:, 2:] != blank), (2, 0))
        back = _reversed(steps, ends), _reversed(places, sizes)
        before, after = _paths(
            torch.cat([each, _along(each, *back)]),
            torch.cat([skips, F.pad(skips, (0, 2)).gather(1, (sizes + 1 - places).clamp(min=0))]),
        ).chunk(2)
        after = _along(after, *back)
        last = before.gather(1, (ends - 1).clamp(min=0)[:, :, None].expand(-1, 1, len(places)))
        total = last.masked_fill((places < sizes - 2)[:, None], -torch.inf).logsumexp((1, 2))
        shares = (before + after - each - total[:, None, None]).exp().masked_fill(~inside, 0.0)
        ctx.save_for_backward(shares.nan_to_num(0.0, 0.0, 0.0), states)
        ctx.vocab_size = log_probs.shape[2]
        return -total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        shares, states = ctx.saved_tensors
        tokens = F.one_hot(states, ctx.vocab_size).to(shares.dtype)  # (B, S, V)
        return -(shares @ tokens) * gradients[0][:, None, None], None, None, None, None


def _paths(each: Float[Tensor, "B T S"], skips: Bool[Tensor, "B S"]) -> Float[Tensor, "B T S"]:
    """The log-probability of all paths into each state, frame by frame."""
    found = [each[:, 0].masked_fill(_numbers(each.shape[2], each) > 1, -torch.inf)]
    for frame in range(1, each.shape[1]):
        here = found[-1]
        two = moved(here, 2).masked_fill(~skips, -torch.inf)
        entered = torch.logaddexp(torch.logaddexp(here, moved(here, 1)), two)
        found.append(entered + each[:, frame])
    return torch.stack(found, 1)


def _reversed(numbers: Int[Tensor, " n"], ends: Int[Tensor, "B 1"]) -> Int[Tensor, "B n"]:
    """Each row's places from its end; those beyond it stay in range."""
    return (ends - 1 - numbers).clamp(min=0)


def _along(
    x: Float[Tensor, "B T S"], steps: Int[Tensor, "B T"], places: Int[Tensor, "B S"]
) -> Float[Tensor, "B T S"]:
    """The values at these steps and places."""
    x = x.gather(1, steps[:, :, None].expand_as(x))
    return x.gather(2, places[:, None].expand_as(x))


def _numbers(count: int, like: Tensor) -> Int[Tensor, " count"]:
    return torch.arange(count, device=like.device)
