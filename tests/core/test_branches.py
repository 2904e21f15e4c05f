"""Attention along branches: each kernel that declares it answers as the definition does."""

import pytest
import torch

from glassformer.core.attention import attend, describe, weigh
from glassformer.core.caches import Ancestry, BranchingCache
from glassformer.core.kernels import KERNELS, choose
from glassformer.core.layout import Layout
from glassformer.core.masks import causal, window
from glassformer.core.positions import POSITIONS, make_position

ROWS, H, G, W, K, V, STEPS = 2, 6, 3, 5, 4, 7, 3
DECLARED = {"loop", "plain", "fused"}


def walked(position, mask, *, fixed):
    """Queries, keys, values and the call of the last of some steps with changes of branches."""
    prompt = Layout.padded([3, 1])
    ancestry = Ancestry(
        ROWS, W, STEPS, prompt=prompt, reach=3 + STEPS, fixed=fixed, device=torch.device("cpu")
    )
    cache = BranchingCache(ancestry.slots, fixed=fixed)
    cache.append(torch.randn(ROWS, G, 3, K), torch.randn(ROWS, G, 3, V), prompt)
    for step in range(STEPS):
        if step:
            ancestry.branch(torch.randint(W, (ROWS, W)))
        ancestry.advance()
        at = ancestry.place()
        q, k, v = (torch.randn(ROWS, n, W, width) for n, width in ((H, K), (G, K), (G, V)))
        q, k = position.turn(q, k, at)
        keys, values = cache.write(k, v, ancestry)
    bias = position.bias(q, at, Layout.full(ROWS, ancestry.reach))
    call = describe(q, keys, mask=mask, bias=bias, aligned=False, branches=ancestry)
    return q, keys, values, call


@torch.no_grad()
@pytest.mark.parametrize("fixed", [False, True], ids=["growing", "fixed"])
@pytest.mark.parametrize("mask", [causal, causal & window(2)], ids=str)
@pytest.mark.parametrize("name", POSITIONS)
def test_every_kernel_that_looks_along_branches_equals_the_definition(name, mask, fixed):
    position = make_position(name, H * K, H, 11, width=K)
    for weight in position.parameters():
        torch.nn.init.normal_(weight)
    q, k, v, call = walked(position, mask, fixed=fixed)
    expected = attend(q, k, v, call, kernel="loop")
    for kernel in DECLARED:
        torch.testing.assert_close(attend(q, k, v, call, kernel=kernel), expected)
    shared = v.repeat_interleave(H // G, dim=1)
    torch.testing.assert_close(weigh(q, k, v, call) @ shared, expected)


@torch.no_grad()
def test_the_choice_along_branches_follows_what_each_kernel_declares():
    q, k, v, call = walked(make_position("none", H * K, H, 11), causal, fixed=False)
    assert choose(q, k, v, call) is KERNELS["fused"]
    for kernel in sorted(set(KERNELS) - DECLARED):
        with pytest.raises(ValueError, match=f"the {kernel} kernel cannot attend along branches"):
            attend(q, k, v, call, kernel=kernel)
