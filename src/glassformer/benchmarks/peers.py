"""Peers: the same layers in other libraries, with comparable settings.

x-transformers is optional: without it, its comparisons are skipped, with a note. It has no bias in
attention and none in its layer norm; ours is compared without the first.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import Tensor, nn

from glassformer.errors import GlassformerError, install

Layer = tuple[nn.Module, Callable[[Tensor], Tensor]]  # and how it is called

NO_X = (
    "x-transformers is not installed, so nothing is measured against it; "
    f"{install('bench')} adds it"
)


def installed(name: str) -> ModuleType | None:
    """An optional library, or None."""
    try:
        return import_module(name)
    except ImportError:
        return None


def needed(name: str, measured: str) -> ModuleType:
    """A library of the `bench` extra, without which these cannot be measured."""
    try:
        return import_module(name)
    except ImportError:
        raise GlassformerError(
            f"{measured} are measured against {name.partition('.')[0]}, which is not installed; "
            f"{install('bench')}"
        ) from None


def load_file(path: Path) -> ModuleType:
    """A peer's model, which comes as a file."""
    spec = spec_from_file_location(f"glassformer_peer_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise GlassformerError(f"{path}: not found; give --peers the folder that holds {path.name}")
    module = sys.modules[spec.name] = module_from_spec(spec)  # the compiler looks it up there
    spec.loader.exec_module(module)
    return module


def layer_of(against: str, dim: int, heads: int, order: str | None, dropout: float) -> Layer:
    """An encoder layer of a peer with its norms in this order, or its attention for None.

    Dropout applies to weights, hidden units and residuals. A layer of x-transformers comes without
    the norm that ends its stacks.
    """
    if against == "torch.nn" and order is None:
        attention = nn.MultiheadAttention(dim, heads, dropout=dropout, batch_first=True)
        return attention, lambda x: attention(x, x, x, need_weights=False)[0]
    module: nn.Module
    if against == "torch.nn":
        module = nn.TransformerEncoderLayer(
            dim, heads, 4 * dim, dropout, "relu", batch_first=True, norm_first=order == "pre"
        )
        return module, module
    library: Any = import_module("x_transformers")
    sizes = {"dim": dim, "heads": heads}
    if order is None:
        module = library.Attention(**sizes, dim_head=dim // heads, dropout=dropout, flash=True)
        return module, module
    module = library.Encoder(
        **sizes,
        depth=1,
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
    return module, module
