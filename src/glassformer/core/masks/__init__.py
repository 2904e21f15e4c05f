"""Masks: who may see whom. True always means *may see*.

A mask is a rule about absolute positions, not a tensor: the same `causal & window(64)` is right for
a whole sequence, for one new token against a cache, and for sequences packed end to end. Padding is
not a mask: it follows from the `Layout`. A mask is an immutable value (it compares, hashes and
prints as what it is), so a kernel can inspect it and use its own fast path.

`base` has how rules combine and how they become tensors. To add a rule, write one frozen dataclass
with `sees`, in `rules` or `tables`, and a picture of it in tests/core/test_masks.py.
"""

from glassformer.core.masks.base import Both, Either, Mask
from glassformer.core.masks.rules import (
    Causal,
    Chunks,
    Everything,
    Prefix,
    Window,
    causal,
    chunks,
    everything,
    prefix,
    window,
)
from glassformer.core.masks.tables import Documents, ValidLengths, documents, valid_lengths

__all__ = [
    "Both",
    "Causal",
    "Chunks",
    "Documents",
    "Either",
    "Everything",
    "Mask",
    "Prefix",
    "ValidLengths",
    "Window",
    "causal",
    "chunks",
    "documents",
    "everything",
    "prefix",
    "valid_lengths",
    "window",
]
