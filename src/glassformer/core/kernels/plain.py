"""plain: attention as written in the paper, and the only kernel that shows its weights.

    weights = softmax(q kᵀ * scale + bias)        over the keys the mask allows
    answer  = weights v

Vaswani et al., 2017. This is the one to read. A softcap applies before the bias is added.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.dropout import dropout
from glassformer.core.kernels.call import Call, Kernel, Supports, everywhere
from glassformer.core.scoring import capped
from glassformer.core.shapes import Answers, Keys, Queries, Values


def attention_weights(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], call: Call
) -> Float[Tensor, "B H T S"]:
    """How much each query takes from each key; all zeros for a query that may see none."""
    allowed, scores = call.allowed(), attention_scores(q, k, call)
    exact = torch.promote_types(scores.dtype, torch.float32)
    if allowed is None:
        return scores.softmax(dim=-1, dtype=exact).to(q.dtype)
    scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1, dtype=exact)
    return weights.masked_fill(~allowed, 0.0).to(q.dtype)


def attention_scores(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], call: Call
) -> Float[Tensor, "B H T S"]:
    """How well each query matches each key, including those it may not see."""
    scores = capped(q @ share(k, q).mT * call.scale, call.softcap)  # (B, H, T, S)
    bias = call.bias_scores()
    return scores if bias is None else scores + bias


def attend(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Average the values, weighted by `attention_weights`."""
    weights = attention_weights(q, k, call)
    return dropout(weights, call.dropout) @ share(v, q)


def share(x: Float[Tensor, "B G S K"], q: Float[Tensor, "B H T _"]) -> Float[Tensor, "B H S K"]:
    """Repeat grouped heads, so that every query head has a key head of its own."""
    return x.repeat_interleave(q.shape[1] // x.shape[1], dim=1)


PLAIN = Kernel(
    run=attend,
    form="padded",
    supports=everywhere(Supports(softcap=True, weights=True, branches=True)),
    suits=lambda q, call: True,
)
