"""Kinds of attention: other formulas, not faster ways to the same one.

                                                                         time     memory
    softmax     every query weighs every key it may see                  n²       n² (fused: n)
    linear      keys are summed up as features, causally if asked        n        n
    linformer   every query weighs a learned summary of the keys         n        n

n is the length. To decode a token, softmax looks at the n keys in its cache; linear at a state of
one size; linformer cannot. Each is an `AttentionLayer` (`core/layer.py`), called like the others,
and refuses by name the masks, positions and caches it cannot take. To add one, write a file here
and list it in KINDS and in `config.KIND_NAMES`.
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
