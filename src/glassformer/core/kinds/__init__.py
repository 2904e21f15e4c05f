"""Kinds of attention: other formulas, not faster ways to the same one.

    softmax     every query weighs every key it may see              MultiHeadAttention

Each is a module called like MultiHeadAttention, and refuses by name the masks, positions and caches
it cannot take. To add one, write a file here and list it in KINDS.
"""

from torch import nn

from glassformer.core.attention import MultiHeadAttention

KINDS: dict[str, type[nn.Module]] = {
    "softmax": MultiHeadAttention,
}
