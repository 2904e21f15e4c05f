"""On a GPU: variable-length flash, compiled rules, and caches whose step is captured in a graph."""

import subprocess
import sys

import pytest
import torch

from glassformer.core.attention import Heads, MultiHeadAttention, attend, describe
from glassformer.core.caches import FixedCache, PagePool
from glassformer.core.kernels import KERNELS, choose
from glassformer.core.kernels.short_rows import short_rows
from glassformer.core.layout import Layout, pad
from glassformer.core.masks import causal, documents, everything, prefix, window
from glassformer.core.positions import POSITIONS, make_position

pytestmark = [pytest.mark.cuda, pytest.mark.usefixtures("without_shape_hook")]

H, K = 6, 32
LENGTHS = (53, 7, 0, 31)
LONGER = (1553, 7, 0, 31)  # too long to share tiles
ROUGH = {"atol": 2e-2, "rtol": 2e-2}
EXACT = {"atol": 1e-4, "rtol": 1e-4}


def vectors(tokens, kv_heads=H, dtype=torch.float32, width=K):
    shapes = [(tokens, H, width), (tokens, kv_heads, width), (tokens, kv_heads, width)]
    return [torch.randn(s, device="cuda", dtype=dtype, requires_grad=True) for s in shapes]


def answer_and_push(q, k, v, call, kernel):
    answer = attend(q, k, v, call, kernel=kernel)
    push = torch.linspace(-1, 1, answer.numel(), device="cuda", dtype=answer.dtype)
    return [answer, *torch.autograd.grad(answer, [q, k, v], push.view_as(answer))]


def in_fp32(*tensors):
    return [x.detach().float().requires_grad_() for x in tensors]


@pytest.mark.parametrize("lengths", [LENGTHS, LONGER], ids=["short", "long"])
@pytest.mark.parametrize("kv_heads", [H, 2, 1])
@pytest.mark.parametrize("mask", [everything, causal, window(5), causal & window(5)], ids=str)
def test_packed_rows_equal_plain_with_gradients(mask, kv_heads, lengths):
    layout = Layout.packed(lengths, device="cuda")
    q, k, v = vectors(sum(lengths), kv_heads, torch.bfloat16)
    call = describe(q, k, mask=mask, queries=layout)
    fast = answer_and_push(q, k, v, call, "packed")
    slow = answer_and_push(*in_fp32(q, k, v), call, "plain")
    for ours, theirs in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours.float(), theirs, atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize("widths", [(4, 4), (10, 6), (12, 20), (256, 256)], ids=str)
def test_packed_rows_have_heads_of_any_width(widths):
    layout = Layout.packed(LENGTHS, device="cuda")
    tokens, (wide, other) = sum(LENGTHS), widths
    q, k, _ = vectors(tokens, 2, torch.bfloat16, wide)
    _, _, v = vectors(tokens, 2, torch.bfloat16, other)
    call = describe(q, k, mask=causal, queries=layout)
    fast = answer_and_push(q, k, v, call, "packed")
    slow = answer_and_push(*in_fp32(q, k, v), call, "plain")
    for ours, theirs in zip(fast, slow, strict=True):
        torch.testing.assert_close(ours.float(), theirs, atol=5e-2, rtol=5e-2)


@pytest.mark.parametrize("theirs", [(3, 41, 5, 0), (3, 1641, 5, 0)], ids=["short", "long"])
def test_packed_rows_look_across(theirs):
    q, _, _ = vectors(sum(LENGTHS), H, torch.bfloat16)
    _, k, v = vectors(sum(theirs), 2, torch.bfloat16)
    queries, keys = (Layout.packed(n, device="cuda") for n in (LENGTHS, theirs))
    call = describe(q, k, queries=queries, keys=keys)
    fast = attend(q, k, v, call, kernel="packed")
    slow = attend(*in_fp32(q, k, v), call, kernel="plain")
    torch.testing.assert_close(fast.float(), slow, **ROUGH)
    assert fast[-31:].eq(0).all()  # the last row has nothing to look at


@pytest.mark.parametrize("mask", [everything, causal], ids=str)
def test_short_rows_compiled_equal_eager(mask):
    layout = Layout.packed(LENGTHS, device="cuda")
    q, k, v = vectors(sum(LENGTHS), H, torch.bfloat16)
    call = describe(q, k, mask=mask, queries=layout)
    rows = layout.bounds, layout.bounds, layout.row_of, layout.row_of
    checks = ("test_schema", "test_autograd_registration", "test_faketensor")
    given = (q, k, v, *rows, mask is causal, call.scale)
    torch.library.opcheck(short_rows, given, test_utils=checks)
    eager = answer_and_push(q, k, v, call, "packed")
    torch.compiler.reset()
    answer = torch.compile(lambda *x: attend(*x, call, kernel="packed"), fullgraph=True)(q, k, v)
    push = torch.linspace(-1, 1, answer.numel(), device="cuda", dtype=answer.dtype)
    compiled = [answer, *torch.autograd.grad(answer, [q, k, v], push.view_as(answer))]
    for ours, theirs in zip(compiled, eager, strict=True):
        torch.testing.assert_close(ours, theirs, **ROUGH)


@pytest.mark.parametrize("form", ["padded", "packed"])
@pytest.mark.parametrize(
    "mask",
    [causal, window(5), causal | prefix(3), documents([[20, 40], [9], [9], [5, 30]]) & causal],
    ids=str,
)
def test_compiled_rules_equal_plain_with_gradients(mask, form):
    layout = Layout.packed(LENGTHS, device="cuda")
    q, k, v = (x.detach() for x in vectors(sum(LENGTHS), 2))
    if form == "padded":
        q, k, v = (pad(x, layout).transpose(1, 2).contiguous() for x in (q, k, v))
        layout = layout.as_padded()
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    call = describe(q, k, mask=mask, queries=layout)
    real = layout.real
    for ours, theirs in zip(
        answer_and_push(q, k, v, call, "flex"), answer_and_push(q, k, v, call, "plain"), strict=True
    ):
        torch.testing.assert_close(ours, theirs, **EXACT)
    assert real.any()


@pytest.mark.parametrize(
    "name", [n for n in POSITIONS if n not in ("none", "learned", "sinusoidal")]
)
def test_compiled_biases_equal_plain(name):
    layer = MultiHeadAttention(H * K, Heads(H, 2)).cuda()
    position = make_position(name, H * K, H, 64).cuda()
    for weight in position.parameters():
        torch.nn.init.normal_(weight)
    x, layout = torch.randn(4, 53, H * K, device="cuda"), Layout.padded(LENGTHS, device="cuda")
    said = {}
    for layer.kernel in ("flex", "plain"):
        with torch.no_grad():
            said[layer.kernel] = layer(x, mask=causal, position=position, layout=layout)
    torch.testing.assert_close(said["flex"][layout.real], said["plain"][layout.real], **EXACT)


def test_the_choice_on_a_gpu():
    layout = Layout.packed(LENGTHS, device="cuda")
    half, full = vectors(sum(LENGTHS), dtype=torch.bfloat16), vectors(sum(LENGTHS))
    assert choose(*half, describe(*half[:2], queries=layout, mask=causal)) is KERNELS["packed"]
    assert choose(*full, describe(*full[:2], queries=layout, mask=causal)) is KERNELS["fused"]
    wide = vectors(sum(LENGTHS), dtype=torch.bfloat16, width=264)
    assert choose(*wide, describe(*wide[:2], queries=layout, mask=causal)) is KERNELS["fused"]
    long = [torch.randn(1, H, 8192, K, device="cuda", dtype=torch.bfloat16) for _ in "qkv"]
    assert choose(*long, describe(*long[:2], mask=window(64))) is KERNELS["flex"]
    assert choose(*long, describe(*long[:2], mask=causal)) is KERNELS["fused"]
    with pytest.raises(
        ValueError, match="the packed kernel cannot work in float32 on cuda; use auto"
    ):
        choose(*full, describe(*full[:2], queries=layout), forced="packed")


@pytest.mark.parametrize("name", POSITIONS)
@torch.no_grad()
def test_a_cached_step_replays_as_a_graph(name):
    layer = MultiHeadAttention(H * K, Heads(H, 2)).cuda()
    position = make_position(name, H * K, H, 32).cuda()
    x = torch.randn(3, 11, H * K, device="cuda")
    together = layer(x, mask=causal, position=position)
    cache = FixedCache(3, 32, heads=2, key_width=K, value_width=K, device="cuda")
    token = x[:, :1].clone()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):  # capture wants a warm-up on a stream of its own
        layer(token, mask=causal, position=position, cache=cache)
    torch.cuda.current_stream().wait_stream(side)
    cache.clear()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = layer(token, mask=causal, position=position, cache=cache)
    cache.clear()
    for t in range(x.shape[1]):
        token.copy_(x[:, t : t + 1])
        graph.replay()
        torch.testing.assert_close(answer[:, 0], together[:, t], **EXACT)


@torch.no_grad()
def test_pages_on_a_gpu_hold_what_a_whole_pass_computes():
    layer = MultiHeadAttention(H * K, Heads(H, 2)).cuda()
    x = torch.randn(2, 11, H * K, device="cuda")
    together = layer(x, mask=causal)
    pool = PagePool(
        pages=9, page_size=3, layers=1, heads=2, key_width=K, value_width=K, device="cuda"
    )
    rows, said = [pool.open(), pool.open()], []
    for begin, end in [(0, 4), (4, 5), (5, 6), (6, 11)]:
        layout, [cache] = pool.extend(rows, [end - begin] * 2)
        said.append(layer(x[:, begin:end], mask=causal, cache=cache, layout=layout))
    torch.testing.assert_close(torch.cat(said, dim=1), together, **EXACT)


def test_a_full_cache_stops_the_gpu_instead_of_forgetting():
    """In a process of its own: an assertion on the device ends the process's use of it."""
    code = """
import torch
from glassformer.core.attention import MultiHeadAttention
from glassformer.core.caches import FixedCache
layer = MultiHeadAttention(32, 2).cuda()
cache = FixedCache(1, 2, heads=2, key_width=16, value_width=16, device="cuda")
with torch.no_grad():
    for _ in range(3):
        layer(torch.randn(1, 1, 32, device="cuda"), cache=cache)
    torch.cuda.synchronize()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "device-side assert" in done.stderr
