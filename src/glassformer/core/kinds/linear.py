"""linear: attention whose weights are products of features, so that keys can be summed first.

    answer[t] = (φ(q[t]) · Σ φ(k[s]) v[s]ᵀ) / (φ(q[t]) · Σ φ(k[s]))        φ(x) = elu(x) + 1

The sums run over the keys a query may see. For `everything` one pair of sums serves all queries;
for `causal` they grow with the query, chunk by chunk, and are the only state that decoding needs.
Time and memory are linear in the length. Katharopoulos et al., 2020.

It supports no other masks, and no positions that rotate queries and keys (rotated features are not
positive) or add to the scores (there are none).
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.core.attention import describe
from glassformer.core.caches import Cache, Memory, StateCache
from glassformer.core.kernels import Call
from glassformer.core.kernels.forms import packed_up, padded_call
from glassformer.core.kernels.plain import share
from glassformer.core.layer import AttentionLayer
from glassformer.core.layout import Layout, zero_padding
from glassformer.core.masks import Mask, causal, everything
from glassformer.core.positions import POSITIONS, Position, adds_to_scores, name_of, turns
from glassformer.core.refusals import check
from glassformer.core.shapes import Answers, ByHead, Keys, Queries, Values, Vectors

CHUNK = 64  # queries compared key by key; about the width of a head is cheapest

SharedQueries = Float[Tensor, "B G R T K"]  # R query heads share a key head
Sums = Float[Tensor, "B G K columns"]  # φ(k) vᵀ summed, and φ(k) alone in the last column


class LinearState(StateCache):
    """The state of causal linear attention: `Sums`."""


class LinearAttention(AttentionLayer):
    """Attention in time linear in the length, called like `MultiHeadAttention`.

    Supports the masks `everything` and `causal`, positions that only change the input, and a
    `LinearState`; anything else is refused. Sums are kept in at least fp32.
    """

    def look_around(
        self,
        x: Vectors,
        mask: Mask,
        position: Position | None,
        cache: Cache | None,
        layout: Layout,
    ) -> Answers:
        _refuse_mask(mask)
        _refuse_position(position)
        state = _state(cache)
        layout = state.place(layout)
        q, (k, v) = self.queries(x), self.keys_and_values(x)
        call = describe(q, k, mask=mask, queries=layout, keys=layout, aligned=True)
        return self.attend(q, k, v, call, state)

    def look_across(self, x: Vectors, memory: Memory, mask: Mask, layout: Layout) -> Answers:
        _refuse_across(mask)
        q = self.queries(x)
        call = describe(q, memory.k, queries=layout, keys=memory.layout, aligned=False)
        return self.attend(q, memory.k, memory.v, call)

    def attend(
        self, q: Queries, k: Keys, v: Values, call: Call, cache: Cache | None = None
    ) -> Answers:
        state = _state(cache)
        answer, sums = attend_linearly(q, k, v, call, state.before(call.queries))
        state.hold(sums, call.queries)
        return answer

    def weigh(
        self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], call: Call
    ) -> Float[Tensor, "B H T S"]:
        """The weights that the sums stand for: φ(q[t]) · φ(k[s]) / Σ φ(q[t]) · φ(k[s])."""
        return linear_weights(q, k, call)

    def new_cache(self) -> LinearState:
        """An empty state for decoding from left to right."""
        return LinearState()


def attend_linearly(
    q: Queries, k: Keys, v: Values, call: Call, before: Sums | None = None
) -> tuple[Answers, Sums]:
    """The answers, in the form of the queries, and the sums including these keys."""
    check(q, k, v, call)
    form, dtype = call.queries, q.dtype
    q, k, v, call = padded_call(q, k, v, call)
    look = look_back if call.mask.band == causal.band else look_everywhere
    with torch.autocast(q.device.type, enabled=False):  # sums need more than half precision
        wide = torch.promote_types(dtype, torch.float32)
        q, k, v = features(q.to(wide)), features(k.to(wide)), v.to(wide)
        k = zero_padding(k, call.keys, axis=2)
        v = F.pad(v, (0, 1), value=1.0)  # sums the weights alongside the values
        if before is None:
            before = k.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1])
        summed, after = look(q.unflatten(1, (k.shape[1], -1)), k, v, before)
        weight = summed[..., -1:]
        # Features are never negative: a weight of 0 means that nothing was seen.
        answer = summed[..., :-1] / weight.masked_fill(weight == 0, 1.0)
        answer = answer.flatten(1, 2).to(dtype)  # (B, H, T, W)
    return packed_up(answer, form) if form.is_packed else answer, after


def linear_weights(
    q: Float[Tensor, "B H T K"], k: Float[Tensor, "B G S K"], call: Call
) -> Float[Tensor, "B H T S"]:
    """How much each query takes from each key; all zeros for a query that may see none."""
    wide, allowed = torch.promote_types(q.dtype, torch.float32), call.allowed()
    with torch.autocast(q.device.type, enabled=False):
        products = features(q.to(wide)) @ features(share(k, q).to(wide)).mT  # (B, H, T, S)
        if allowed is not None:
            products = products.masked_fill(~allowed, 0.0)
        total = products.sum(-1, keepdim=True)
        return (products / total.masked_fill(total == 0, 1.0)).to(q.dtype)


def features(x: ByHead) -> ByHead:
    """elu(x) + 1, which is exp(x) below 0; written this way, it does not round to 0 too early.

    >>> features(torch.tensor([[[-30.0, 0.0, 2.0]]]))
    tensor([[[9.3576e-14, 1.0000e+00, 3.0000e+00]]])
    """
    return x.clamp(max=0).exp() + x.relu()


def look_everywhere(
    q: SharedQueries, k: Float[Tensor, "B G S K"], v: Float[Tensor, "B G S columns"], before: Sums
) -> tuple[Float[Tensor, "B G R T columns"], Sums]:
    """Every query times the sums over all keys, including those before."""
    after = before + torch.einsum("bgsk,bgsw->bgkw", k, v)
    return torch.einsum("bgrtk,bgkw->bgrtw", q, after), after


def look_back(
    q: SharedQueries, k: Float[Tensor, "B G T K"], v: Float[Tensor, "B G T columns"], before: Sums
) -> tuple[Float[Tensor, "B G R T columns"], Sums]:
    """Every query times the sums up to its own key.

    Within a chunk, queries and keys are compared one by one; all earlier chunks are summed.
    """
    length = q.shape[-2]
    size = max(1, min(CHUNK, length))
    q, k, v = chunked(q, size), chunked(k, size), chunked(v, size)
    own = torch.einsum("bgnsk,bgnsw->bgnkw", k, v)
    sums = torch.cat([before[:, :, None], own], dim=2).cumsum(dim=2)  # (B, G, chunks + 1, K, W + 1)
    weights = torch.einsum("bgrntk,bgnsk->bgrnts", q, k).tril()
    inside = torch.einsum("bgrnts,bgnsw->bgrntw", weights, v)
    earlier = torch.einsum("bgrntk,bgnkw->bgrntw", q, sums[:, :, :-1])
    return (inside + earlier).flatten(-3, -2)[..., :length, :], sums[:, :, -1]


def chunked(x: Float[Tensor, "*by T K"], size: int) -> Float[Tensor, "*by chunks size K"]:
    """Split the length into chunks of `size`, the last one padded with zeros."""
    return F.pad(x, (0, 0, 0, -x.shape[-2] % size)).unflatten(-2, (-1, size))


def _refuse_mask(mask: Mask) -> None:
    if mask.band not in (everything.band, causal.band):
        raise ValueError(
            f"linear attention cannot apply {mask}; use causal or everything, or kind = softmax"
        )


def _refuse_position(position: Position | None) -> None:
    if position is None or not (turns(type(position)) or adds_to_scores(type(position))):
        return
    reason = "rotated features are not positive"
    if adds_to_scores(type(position)):
        reason = "it adds to the scores, and there are none"
    supported = [name for name, s in POSITIONS.items() if not (turns(s) or adds_to_scores(s))]
    raise ValueError(
        f"linear attention cannot apply {name_of(position)}: {reason}; "
        f"use {', '.join(supported)}, or kind = softmax"
    )


def _refuse_across(mask: Mask) -> None:
    if mask.band != everything.band:
        raise ValueError(
            f"linear attention cannot apply {mask} to a memory; use everything, or kind = softmax"
        )


def _state(cache: Cache | None) -> LinearState:
    """The state to continue from; without a cache, a fresh one to be discarded."""
    if cache is None:
        return LinearState()
    if not isinstance(cache, LinearState):
        raise ValueError(
            f"linear attention cannot continue from a {type(cache).__name__}: it keeps sums, not "
            f"keys; pass a LinearState, or use kind = softmax"
        )
    return cache
