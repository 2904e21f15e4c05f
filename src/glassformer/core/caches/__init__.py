"""Caches: keys and values of positions already read, so that they are computed once.

    GrowingCache   grows with every call; gradients pass through                the one to read
    FixedCache     allocated once, same shapes and addresses at every step      compiled decoding
    PagePool       pages and a block table, shared prefixes, no fragmentation   many conversations
    BranchingCache every token stored once, whichever branches see it           beam search
    ChunkCache     the chunks that the next one sees                            streams
    StateCache     a state of fixed size instead of keys                        linear, recurrent
    Memory         keys and values of a finished sequence                       cross-attention

A cache is an argument of the call. Rows of one cache may have different lengths. The first five are
a `KeyCache`, which softmax attention needs; a layer with a state needs a `StateCache`.
"""

from glassformer.core.caches.base import Cache, KeyCache, Memory
from glassformer.core.caches.branching import Ancestry, BranchingCache
from glassformer.core.caches.chunked import ChunkCache
from glassformer.core.caches.fixed import FixedCache
from glassformer.core.caches.growing import GrowingCache
from glassformer.core.caches.paged import PagePool
from glassformer.core.caches.paged_cache import PagedCache
from glassformer.core.caches.state import StateCache

__all__ = [
    "Ancestry",
    "BranchingCache",
    "Cache",
    "ChunkCache",
    "FixedCache",
    "GrowingCache",
    "KeyCache",
    "Memory",
    "PagePool",
    "PagedCache",
    "StateCache",
]
