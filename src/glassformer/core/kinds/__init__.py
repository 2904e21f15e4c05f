"""Kinds of attention: different formulas, not faster implementations of the same one.

                                                                         time     memory
    softmax     every query weighs every key it may see                  n²       n² (fused: n)
    linear      keys are summed as features, causally or not             n        n
    linformer   every query weighs a learned summary of the keys         n        n

n is the length. To decode a token, softmax attends to the n keys in its cache, linear to a state of
fixed size; linformer cannot decode. Each is an `AttentionLayer` (`core/layer.py`), called like the
others, and refuses the masks, positions and caches it does not support. To add one, write a file
here and list it in KINDS and in `config.KIND_NAMES`.
"""

from collections.abc import Callable

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.kinds.linear import LinearAttention, LinearState
from glassformer.core.kinds.linformer import Linformer
from glassformer.core.layer import AttentionLayer

__all__ = ["KINDS", "LinearAttention", "LinearState", "Linformer", "MultiHeadAttention"]

KINDS: dict[str, Callable[..., AttentionLayer]] = {
    "softmax": MultiHeadAttention,
    "linear": LinearAttention,
    "linformer": Linformer,
}
