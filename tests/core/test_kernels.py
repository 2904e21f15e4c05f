"""The ladder: every kernel answers as `loop`, whatever the mask, position, heads or cache."""

import gc
import math
import os
import weakref

import pytest
import torch
from pairwise import every_case, every_pair
from torch.nn.attention import flex_attention
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from glassformer.core.attention import Heads, MultiHeadAttention, attend, describe, weigh
from glassformer.core.caches import FixedCache, GrowingCache, PagePool
from glassformer.core.kernels import KERNELS, choose, flex, tiled
from glassformer.core.layout import Layout, pack
from glassformer.core.masks import causal, documents, everything, prefix, valid_lengths, window
from glassformer.core.positions import POSITIONS, make_position
from glassformer.core.scoring import Scoring

DEVICE = os.environ.get("GLASSFORMER_TEST_DEVICE", "cpu")
ROWS, DIM, H, T = 3, 29, 6, 5
K, W = (14, 11) if DEVICE == "cpu" else (16, 32)  # the GPU kernels want at least 16
LENGTHS, FIRST = (5, 3, 0), (3, 2, 0)  # a ragged batch with an empty row, and its first part
TIGHT = {"atol": 2e-5, "rtol": 1e-5}
BF16 = {"atol": 2e-2, "rtol": 2e-2}  # three significant digits, through scores and values

FAST = [name for name in KERNELS if name != "loop"]
CHOICES = {
    # On a GPU flex compiles for every rule, which takes seconds; test_cuda.py tries those there.
    "kernel": [name for name in FAST if DEVICE == "cpu" or name != "flex"],
    "mask": [
        everything,
        causal,
        window(2),
        causal & window(2),
        prefix(2),
        causal | prefix(2),
        documents([2, 3]),
        documents([[2, 3], [1, 4], [3, 2]]) & causal,
        valid_lengths([[1, 2, 0, 1, 4], [3, 2, 0, 1, 1], [1, 1, 1, 1, 1]]),
    ],
    "position": list(POSITIONS),
    "scoring": [Scoring(), Scoring(scale=0.7, softcap=1.3)],
    "kv_heads": [H, 2, 1],
    "cache": [None, "growing", "fixed", "paged"],
    "form": ["full", "padded", "packed"],
}


@pytest.fixture(autouse=True)
def _flex_runs_without_the_hook(request):
    """It compiles the rules of masks, which works only with shape checks off."""
    if "flex" in request.node.name:
        request.getfixturevalue("without_shape_hook")


@pytest.fixture(autouse=True)
def _small_tiles(monkeypatch):
    """So small that every sequence takes several, the last of them not full."""
    monkeypatch.setattr(tiled, "TILE", 2)


def name_of(case):
    return " / ".join(str(value) for value in case.values())


def answers(layer, case, x):
    """What the layer says for the real tokens of `x`, at once or in two parts through a cache."""
    position = case["at"]
    lengths = (T,) * ROWS if case["form"] == "full" else LENGTHS
    first = (3,) * ROWS if case["form"] == "full" else FIRST
    parts = [(0, lengths)]
    if case["cache"]:
        parts = [(0, first), (1, tuple(a - b for a, b in zip(lengths, first, strict=True)))]
    cache, pool, said = None, None, []
    if case["cache"] == "growing":
        cache = GrowingCache()
    elif case["cache"]:
        shape = {"heads": layer.kv_heads, "key_width": K, "value_width": W, "device": DEVICE}
        cache = FixedCache(ROWS, T + 2, **shape) if case["cache"] == "fixed" else None
        pool = PagePool(pages=11, page_size=2, layers=1, **shape)
        sequences = [pool.open() for _ in range(ROWS)]
    for part, counts in parts:
        layout = Layout.full(ROWS, counts[0], DEVICE)
        if case["form"] != "full":
            layout = Layout.padded(counts, device=DEVICE)
        if case["cache"] == "paged":
            layout, [cache] = pool.extend(sequences, counts)
        tokens = torch.zeros(ROWS, layout.longest, DIM, device=DEVICE)
        for row, count in enumerate(counts):
            begin = first[row] if part else 0
            tokens[row, :count] = x[row, begin : begin + count]
        flat = layout.as_packed()
        if case["form"] == "packed":
            y = layer(
                pack(tokens, flat), mask=case["mask"], position=position, cache=cache, layout=flat
            )
        else:
            y = layer(tokens, mask=case["mask"], position=position, cache=cache, layout=layout)
            y = pack(y, flat)
        said.append(y)
    return torch.cat(said)


def layer_for(case):
    shape = Heads(H, case["kv_heads"], key_width=K, value_width=W)
    layer = MultiHeadAttention(DIM, shape, bias=True, scoring=case["scoring"])
    position = make_position(case["position"], DIM, H, 16, width=K)
    for weight in position.parameters():
        torch.nn.init.normal_(weight)
    case["at"] = position.to(DEVICE)
    return layer.to(DEVICE)


def agree_with_loop(case):
    layer, x = layer_for(case), torch.randn(ROWS, T, DIM, device=DEVICE)
    trains = case["cache"] in (None, "growing")
    said, felt = {}, {}
    for kernel in ("loop", case["kernel"]):
        layer.kernel = kernel
        try:
            with torch.set_grad_enabled(trains):
                said[kernel] = answers(layer, case, x)
        except ValueError as refusal:
            if "kernel cannot compute gradients" in str(refusal):
                trains = False
                with torch.no_grad():
                    said[kernel] = answers(layer, case, x)
            elif "kernel cannot" in str(refusal):
                return False
            else:
                raise
        if trains:
            wanted = [*layer.parameters(), *case["at"].parameters()]
            push = torch.linspace(-1, 1, said[kernel].numel(), device=DEVICE).view_as(said[kernel])
            felt[kernel] = torch.autograd.grad(said[kernel], wanted, push, allow_unused=True)
    torch.testing.assert_close(said[case["kernel"]], said["loop"], **TIGHT)
    if trains:
        for ours, theirs in zip(felt[case["kernel"]], felt["loop"], strict=True):
            assert (ours is None) == (theirs is None)
            if ours is not None:
                assert ours.isfinite().all()
                torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=1e-4)
    return True


@pytest.mark.parametrize("case", every_pair(CHOICES), ids=name_of)
def test_every_kernel_equals_the_definition(case):
    if not agree_with_loop(dict(case)):
        pytest.skip("this kernel says that it cannot")


@pytest.mark.full
@pytest.mark.parametrize("kernel", CHOICES["kernel"])
@pytest.mark.parametrize("position", POSITIONS)
def test_every_kernel_equals_the_definition_in_every_combination(kernel, position, monkeypatch):
    # PyTorch traces flex anew for every rule, even uncompiled; its switch for debugging does not.
    monkeypatch.setattr(flex_attention, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)
    cases = every_case(CHOICES | {"kernel": [kernel], "position": [position]})
    assert sum(agree_with_loop(case) for case in cases) > 100


@pytest.mark.usefixtures("half_on_cpu")
@pytest.mark.parametrize("kernel", FAST)
@pytest.mark.parametrize("mask", [everything, causal, causal & window(2)], ids=str)
def test_half_precision_stays_within_three_digits(kernel, mask):
    q, k, v = (torch.randn(7, H, 16, device=DEVICE) for _ in "qkv")
    layout = Layout.packed([4, 3], device=DEVICE)
    exact = attend(q, k, v, describe(q, k, mask=mask, queries=layout), kernel="loop")
    q, k, v = (x.bfloat16() for x in (q, k, v))
    rough = attend(q, k, v, describe(q, k, mask=mask, queries=layout), kernel=kernel)
    assert rough.dtype == torch.bfloat16
    torch.testing.assert_close(rough.float(), exact, **BF16)


@pytest.mark.parametrize("kernel", FAST)
@pytest.mark.parametrize("kv_heads", CHOICES["kv_heads"])
def test_every_kernel_looks_across_at_a_ragged_memory(kernel, kv_heads):
    q = torch.randn(ROWS, H, T, 16, device=DEVICE)
    k, v = torch.randn(2, ROWS, kv_heads, 7, 16, device=DEVICE)
    queries, keys = Layout.full(ROWS, T, DEVICE), Layout.padded((7, 2, 0), device=DEVICE)
    call = describe(q, k, queries=queries, keys=keys)
    if DEVICE == "cuda" and kernel == "packed":
        q, k, v = q.bfloat16(), k.bfloat16(), v.bfloat16()
    expected = attend(q.float(), k.float(), v.float(), call, kernel="loop")
    answer = attend(q, k, v, call, kernel=kernel).float()
    torch.testing.assert_close(answer, expected, **(TIGHT if q.dtype == torch.float32 else BF16))


@pytest.mark.parametrize("kernel", ["plain", "tiled", "fused", "packed"])
@pytest.mark.parametrize("biased", [False, True], ids=["unbiased", "biased"])
def test_a_query_that_may_see_nothing_answers_zero_with_finite_gradients(kernel, biased):
    if DEVICE == "cuda" and kernel == "packed":
        pytest.skip("flash attention takes bands only, and a band shows each query itself")
    q, k, v = (torch.randn(2, H, T, 8, device=DEVICE, requires_grad=True) for _ in "qkv")
    blind = valid_lengths([[0, 2, 0, 5, 0]])
    bias = make_position("t5", 48, H, 16).to(DEVICE).bias(q, Layout.full(2, T), Layout.full(2, T))
    call = describe(q, k, mask=blind, bias=bias if biased else None)
    with torch.autograd.set_detect_anomaly(True, check_nan=True):
        answer = attend(q, k, v, call, kernel=kernel)
        answer.square().sum().backward()
    assert answer[:, :, ::2].eq(0).all()
    assert answer[:, :, 1::2].ne(0).all()
    for x in (q, k, v):
        assert x.grad.isfinite().all()
        assert x.grad.ne(0).any()


@pytest.mark.usefixtures("without_shape_hook")
def test_flex_builds_a_block_mask_once_for_a_batch_and_anew_for_another():
    q, k, v = (torch.randn(2, H, T, 16, device=DEVICE) for _ in "qkv")
    layout = Layout.padded([5, 3], device=DEVICE)
    call = describe(q, k, mask=window(2), queries=layout)
    masks = [flex.block_mask(q, k, call) for _ in range(2)]
    other = flex.block_mask(q, k, describe(q, k, mask=window(3), queries=layout))
    layout.row_lengths[0] = 2  # as a captured step changes its layout: in place
    masks += [flex.block_mask(q, k, call) for _ in range(2)]
    assert masks[0] is masks[1] is not other
    assert masks[0] is not masks[2] is masks[3]
    answer = attend(q, k, v, call, kernel="flex")
    torch.testing.assert_close(answer, attend(q, k, v, call, kernel="loop"), **TIGHT)


@pytest.mark.usefixtures("without_shape_hook")
def test_a_block_mask_is_gone_with_its_batch():
    """Without waiting for the garbage collector: on a GPU it takes memory."""
    q, layout = torch.randn(2, H, T, 16), Layout.padded([5, 3])
    alive = weakref.ref(flex.block_mask(q, q, describe(q, q, mask=window(2), queries=layout)))
    gc.disable()
    del layout
    gone = alive() is None
    gc.enable()
    assert gone


@pytest.mark.parametrize("form", ["as_padded", "as_packed"])
def test_flex_attends_in_inference_mode_with_a_layout_made_there(form):
    with torch.inference_mode():
        layout = getattr(Layout.padded([5, 3], device=DEVICE), form)()
        q, k, v = (torch.randn(2, H, T, 16, device=DEVICE) for _ in "qkv")
        if layout.is_packed:
            q, k, v = (pack(x.transpose(1, 2), layout) for x in (q, k, v))
        call = describe(q, k, mask=causal & window(2), queries=layout)
        expected = attend(q, k, v, call, kernel="loop")
        torch.testing.assert_close(attend(q, k, v, call, kernel="flex"), expected, **TIGHT)


@pytest.mark.parametrize("kernel", ["plain", "tiled"])
@pytest.mark.parametrize("mask", [everything, causal & window(2)], ids=str)
def test_what_is_to_be_read_keeps_double_precision(kernel, mask):
    q, k, v = (torch.randn(2, 1, 3, 2, dtype=torch.float64, requires_grad=True) for _ in "qkv")
    call = describe(q, k, mask=mask, queries=Layout.padded([3, 2]))
    exact = {"atol": 1e-12, "rtol": 0.0}
    torch.testing.assert_close(
        attend(q, k, v, call, kernel=kernel), attend(q, k, v, call, kernel="loop"), **exact
    )
    assert torch.autograd.gradcheck(lambda q, k, v: attend(q, k, v, call, kernel=kernel), (q, k, v))


class Largest(TorchDispatchMode):
    """The number of elements of the largest tensor that any operation returns."""

    elements = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        for x in tree_leaves(result):
            if isinstance(x, torch.Tensor):
                self.elements = max(self.elements, x.numel())
        return result


def kept_and_largest(kernel, length, position):
    """Bytes kept for the backward pass, and the largest tensor that either pass makes."""
    q, k, v = (torch.randn(1, 2, length, 4, requires_grad=True) for _ in "qkv")
    layout, kept, held = Layout.full(1, length), {}, []
    bias = make_position(position, 8, 2, length).bias(q, layout, layout)
    call = describe(q, k, mask=causal, queries=layout, bias=bias)

    def keep(x):
        held.append(x)  # or another tensor may take its place in memory
        where = x.untyped_storage().data_ptr()
        kept[where] = max(kept.get(where, 0), x.nbytes)
        return x

    with Largest() as largest:
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            answer = attend(q, k, v, call, kernel=kernel)
        answer.sum().backward()
    return sum(kept.values()), largest.elements


@pytest.mark.usefixtures("without_shape_hook")
@pytest.mark.parametrize("position", ["none", "alibi"])
def test_the_memory_of_tiled_grows_with_n_and_that_of_plain_with_its_square(position, monkeypatch):
    monkeypatch.setattr(tiled, "TILE", 16)
    for kernel, power in (("tiled", 1), ("plain", 2)):
        short, long = (kept_and_largest(kernel, length, position) for length in (64, 256))
        kept, largest = (
            math.log(after / before, 4) for before, after in zip(short, long, strict=True)
        )
        assert kept == pytest.approx(power, abs=0.2)
        assert largest <= power + 0.01


def test_the_weights_are_those_of_the_answer():
    q, k, v = torch.randn(2, H, T, K), torch.randn(2, 2, T, K), torch.randn(2, 2, T, W)
    call = describe(q, k, mask=causal & window(3))
    weights = weigh(q, k, v, call)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, H, T))
    torch.testing.assert_close(
        weights @ v.repeat_interleave(3, dim=1), attend(q, k, v, call, kernel="loop"), **TIGHT
    )


def test_the_choice_follows_what_each_kernel_declares():
    q = torch.randn(2, H, T, K)
    packed, padded = Layout.packed([3, 2]), Layout.full(2, T)
    flat = torch.randn(5, H, K)
    assert choose(q, q, q, describe(q, q)) is KERNELS["fused"]
    assert choose(flat, flat, flat, describe(flat, flat, queries=packed)) is KERNELS["packed"]
    assert choose(q, q, q, describe(q, q, queries=padded), weights=True) is KERNELS["plain"]
    by_row = documents([[3], [2]])
    call = describe(flat, flat, queries=packed, mask=by_row)
    assert choose(flat, flat, flat, call) is KERNELS["fused"]


@pytest.mark.parametrize(
    ("kernel", "wanted", "why"),
    [
        (
            "fused",
            {"weights": True},
            "the fused kernel cannot return the weights on cpu; use auto or plain",
        ),
        (
            "flex",
            {"gradient": True},
            "the flex kernel cannot compute gradients on cpu; use auto or loop or",
        ),
        (
            "flex",
            {"dropout": 0.1},
            "the flex kernel cannot apply dropout on cpu; use auto or plain or",
        ),
        (
            "fused",
            {"scoring": Scoring(softcap=30.0)},
            "the fused kernel cannot cap scores on cpu; use auto or loop or plain or tiled or flex",
        ),
        (
            "packed",
            {"scoring": Scoring(softcap=30.0)},
            "the packed kernel cannot cap scores on cpu; use auto or loop or plain or tiled or",
        ),
        (
            "packed",
            {"mask": documents([[3], [5]])},
            "the packed kernel cannot apply a mask that differs",
        ),
        ("fussed", {}, "unknown kernel 'fussed'; did you mean 'fused'?"),
        (
            "magic",
            {},
            "unknown kernel 'magic'; the choices are loop, plain, tiled, fused, packed, flex",
        ),
    ],
)
def test_a_forced_kernel_that_cannot_says_why(kernel, wanted, why):
    wanted = dict(wanted)
    weights, gradient = wanted.pop("weights", False), wanted.pop("gradient", False)
    q = torch.randn(2, H, T, K, requires_grad=gradient)
    with pytest.raises(ValueError, match=why.replace("?", r"\?")):
        choose(q, q, q, describe(q, q, **wanted), forced=kernel, weights=weights)


def test_a_device_nobody_listed_is_refused_by_name():
    q = torch.randn(2, H, T, K, device="meta")
    with pytest.raises(
        ValueError, match="the packed kernel cannot run on meta; move it to cpu, cuda or mps"
    ):
        choose(q, q, q, describe(q, q), forced="packed")
