"""fused: the same answers from PyTorch's scaled_dot_product_attention.

It never keeps the T x S weights, and takes the flash path where the hardware has one. The work here
is to pass it the cheapest correct description of the mask: none, `is_causal`, one line of keys per
row, and only then the whole table. And to spare short calls cuDNN's kernel: it is prepared anew for
every shape, which takes 60 ms on an H200, a thousand times as long as the call.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from glassformer.core.kernels.call import Call, Kernel, Supports, everywhere
from glassformer.core.shapes import Answers, Keys, Queries, Values

WITHOUT_CUDNN = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
LONG = 512  # queries in a row, from where cuDNN's kernel is worth its preparation


def attend(q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """Attention without ever holding the weights."""
    width, wide = v.shape[-1], max(q.shape[-1], v.shape[-1])
    causal = is_causal(call)
    with backends(q):
        answer = F.scaled_dot_product_attention(
            widened(q, wide),
            widened(k, wide),
            widened(v, wide),
            attn_mask=None if causal else mask_table(q, call),
            dropout_p=call.dropout,
            is_causal=causal,
            scale=call.scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )
    return answer[..., :width]


def backends(q: Queries) -> AbstractContextManager[None]:
    """Which of its kernels PyTorch may choose for these queries."""
    return sdpa_kernel(WITHOUT_CUDNN) if q.is_cuda and q.shape[-2] < LONG else nullcontext()


def is_causal(call: Call) -> bool:
    """Whether the kernel's own causal mask is this call's mask.

    It counts from the first key, so queries and keys must be the same tokens. Padding follows all
    real tokens, where no real query looks.
    """
    queries_are_keys = call.aligned and call.queries.starts is None
    return queries_are_keys and call.bias is None and call.mask.band == (None, 0)


def mask_table(q: Queries, call: Call) -> Bool[Tensor, "b 1 t S"] | Float[Tensor, "b H T S"] | None:
    """Mask and bias as the smallest possible tensor; None if there is neither."""
    allowed, bias = call.allowed(), call.bias_scores()
    if bias is None:
        return allowed
    bias = bias.to(q.dtype)
    return bias if allowed is None else torch.where(allowed, bias, -torch.inf)


def widened(x: Float[Tensor, "*by _"], width: int) -> Float[Tensor, "*by wide"]:
    """Pad with zeros, which change no score: the flash path needs keys and values of one width."""
    return x if x.shape[-1] == width else F.pad(x, (0, width - x.shape[-1]))


def suits(q: Queries, call: Call) -> bool:
    """Always, except for dropout on a CPU: PyTorch then materialises the weights too, slower."""
    return not (call.dropout and q.device.type == "cpu")


FUSED = Kernel(
    run=attend,
    form="padded",
    supports=everywhere(Supports(branches=True)),
    suits=suits,
)
