"""Peers: the same layers in other libraries, with comparable settings.

x-transformers is optional: without it, its comparisons are skipped, with a note. It has no bias in
attention and none in its layer norm; ours is compared without the first.
"""

from importlib import import_module
from types import ModuleType

from torch import nn

NO_X = (
    "x-transformers is not installed, so nothing is measured against it; "
    'pip install "glassformer[bench]" adds it'
)


def installed(name: str) -> ModuleType | None:
    """An optional library, or None."""
    try:
        return import_module(name)
    except ImportError:
        return None


def torch_attention(dim: int, heads: int, dropout: float = 0.0) -> nn.MultiheadAttention:
    """PyTorch's module; call it with `need_weights=False`, or it materialises the weights."""
    return nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)


def torch_layer(dim: int, heads: int, order: str, dropout: float) -> nn.TransformerEncoderLayer:
    """PyTorch's encoder layer; its dropout applies to weights, hidden units and residuals."""
    return nn.TransformerEncoderLayer(
        dim, heads, 4 * dim, dropout, "relu", batch_first=True, norm_first=order == "pre"
    )


def x_attention(library: ModuleType, dim: int, heads: int, dropout: float = 0.0) -> nn.Module:
    """The attention of x-transformers, by PyTorch's fused function."""
    module: nn.Module = library.Attention(
        dim=dim, heads=heads, dim_head=dim // heads, dropout=dropout, flash=True
    )
    return module


def x_layer(
    library: ModuleType, dim: int, heads: int, order: str, dropout: float = 0.0
) -> nn.Module:
    """One layer of an x-transformers encoder, without the norm that ends its stacks."""
    module: nn.Module = library.Encoder(
        dim=dim,
        depth=1,
        heads=heads,
        pre_norm=order == "pre",
        pre_norm_has_final_norm=False,
        attn_dim_head=dim // heads,
        attn_flash=True,
        attn_dropout=dropout,
        attn_sublayer_dropout=dropout,
        ff_mult=4,
        ff_custom_activation=nn.ReLU(),
        ff_dropout=dropout,
        ff_sublayer_dropout=dropout,
        verbose=False,
    )
    return module
