"""GELU by a sigmoid is GELU to the precision of bf16."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.core.gelu import by_sigmoid, gelu


def pushed(function, x):
    x = x.clone().requires_grad_()
    y = function(x)
    return y.detach(), *torch.autograd.grad(y.sum(), x)


def test_a_sigmoid_is_as_good_as_the_error_function_in_bf16():
    x = torch.linspace(-8, 8, 10_007)
    (y, slope), (exact, exact_slope) = pushed(by_sigmoid, x), pushed(F.gelu, x)
    torch.testing.assert_close(y, exact, atol=2e-6, rtol=1.2e-3)
    torch.testing.assert_close(slope, exact_slope, atol=4e-4, rtol=0)


def test_large_inputs_stay_finite():
    x = torch.tensor([-1e30, -1e5, -300.0, 0.0, 300.0, 1e5, 1e30])
    for ours, theirs in zip(pushed(by_sigmoid, x), pushed(F.gelu, x), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_eagerly_it_is_that_of_pytorch(dtype):
    x = torch.linspace(-8, 8, 1_009).to(dtype)
    assert torch.equal(gelu(x), F.gelu(x))
