"""Run a kernel on the form it works on, padded or packed, whatever the form of the batch."""

from dataclasses import replace

from glassformer.core.kernels.call import Call, Kernel, wants_gradient
from glassformer.core.layout import Layout, pack, pad, zero_padding
from glassformer.core.shapes import Answers, ByHead, Keys, Queries, Values


def run(kernel: Kernel, q: Queries, k: Keys, v: Values, call: Call) -> Answers:
    """The kernel's answer, in the form of the queries."""
    packed = call.queries.is_packed
    if not (q.numel() and k.numel()):  # no queries or no keys
        return v.new_zeros(*q.shape[:-1], v.shape[-1])
    q, k, v, call = clean_call(q, k, v, call)
    if kernel.form == "either" and packed == call.keys.is_packed:
        return kernel.run(q, k, v, call)
    if kernel.form == "packed":
        answer = kernel.run(*packed_call(q, k, v, call))
        return answer if packed else padded(answer, call.queries.as_packed())
    answer = kernel.run(*padded_call(q, k, v, call))
    return packed_up(answer, call.queries) if packed else answer


def clean_call(q: Queries, k: Keys, v: Values, call: Call) -> tuple[Queries, Keys, Values, Call]:
    """The same call with zeros in the padding, so that no large number there becomes NaN.

    Outside training, keys of a cache or memory are left alone: they are too many to copy each step.
    """
    if call.bias is not None and call.bias.by_query and not call.queries.is_packed:
        table = zero_padding(call.bias.table, call.queries, axis=2)
        call = replace(call, bias=replace(call.bias, table=table))
    if not call.queries.is_packed:
        q = zero_padding(q, call.queries, axis=2)
    if not call.keys.is_packed and (call.keys is call.queries or wants_gradient(q, k, v, call)):
        k, v = (zero_padding(x, call.keys, axis=2) for x in (k, v))
    return q, k, v, call


def padded_call(q: Queries, k: Keys, v: Values, call: Call) -> tuple[Queries, Keys, Values, Call]:
    """The same call in padded form."""
    if not (call.queries.is_packed or call.keys.is_packed):
        return q, k, v, call
    bias = call.bias
    if bias is not None and bias.by_query:
        bias = replace(bias, table=padded(bias.table, call.queries))
    q, k, v = padded(q, call.queries), padded(k, call.keys), padded(v, call.keys)
    queries, keys = call.queries.as_padded(), call.keys.as_padded()
    return q, k, v, replace(call, queries=queries, keys=keys, bias=bias)


def packed_call(q: Queries, k: Keys, v: Values, call: Call) -> tuple[Queries, Keys, Values, Call]:
    """The same call in packed form."""
    if call.queries.is_packed and call.keys.is_packed:
        return q, k, v, call
    queries, keys = call.queries.as_packed(), call.keys.as_packed()
    bias = call.bias
    if bias is not None and bias.by_query:
        bias = replace(bias, table=packed_up(bias.table, queries))
    q, k, v = packed_up(q, queries), packed_up(k, keys), packed_up(v, keys)
    return q, k, v, replace(call, queries=queries, keys=keys, bias=bias)


def padded(x: ByHead, layout: Layout) -> ByHead:
    """(N, H, K) -> (B, H, T, K); a padded tensor is returned as it is."""
    return pad(x, layout).transpose(1, 2) if x.ndim == 3 else x


def packed_up(x: ByHead, layout: Layout) -> ByHead:
    """(B, H, T, K) -> (N, H, K); a packed tensor is returned as it is."""
    return pack(x.transpose(1, 2), layout) if x.ndim == 4 else x
