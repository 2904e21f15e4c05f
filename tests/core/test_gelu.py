"""GELU by the approximation that compiled steps use: the exact one, as far as 16 bits can tell."""

import pytest
import torch
import torch.nn.functional as F

from glassformer.core.gelu import FastGELU, gelu


def test_the_fast_form_is_the_exact_one_with_its_derivative():
    x = torch.linspace(-9, 9, 20_001, requires_grad=True)
    for found, expected in zip(
        *((y, *torch.autograd.grad(y.sum(), x)) for y in (FastGELU.apply(x), F.gelu(x))),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.cuda
def test_compiled_for_a_gpu_it_is_the_exact_one_in_bf16():
    x = torch.randn(1000, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn_like(x)
    compiled = torch.compile(gelu)
    found, expected = ((y, *torch.autograd.grad(y, x, grad)) for y in (compiled(x), F.gelu(x)))
    torch.testing.assert_close(found, expected)
