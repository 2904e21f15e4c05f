"""The kernels that put several short rows into a tile, in Triton's interpreter; no GPU needed."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("triton")

CHECK = """
import torch
from glassformer.core.kernels import short_rows_kernel as kernels
from glassformer.core.layout import Layout

def plain(q, k, v, lengths, keys, causal, scale):
    answers = []
    for x, y, z in zip(q.split(lengths), k.split(keys), v.split(keys)):
        hidden = torch.ones(len(x), len(y)).triu(len(y) - len(x) + 1).bool() & causal
        scores = torch.einsum("thk,shk->hts", x, y) * scale
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1).nan_to_num(0)
        answers.append(torch.einsum("hts,shk->thk", weights, z))
    return torch.cat(answers)

torch.manual_seed(0)
same = [3, 20, 0, 70, 5, 130, 1, 9]
for lengths, keys, causal, width in (
    (same, same, False, 64),
    (same, same, True, 64),
    ([3, 20, 0, 70, 5], [7, 0, 5, 129, 64], False, 24),
    ([3, 20, 1, 70, 5], [7, 20, 5, 129, 64], True, 40),
):
    a, b, scale = Layout.packed(lengths), Layout.packed(keys), width**-0.5
    q = torch.randn(sum(lengths), 2, width, requires_grad=True)
    k, v = (torch.randn(sum(keys), 5, width)[:, :2].requires_grad_() for _ in range(2))
    expected = plain(q, k, v, lengths, keys, causal, scale)
    push = torch.randn_like(expected)
    slopes = torch.autograd.grad(expected, [q, k, v], push)
    with torch.no_grad():
        bounds, rows = (a.bounds, b.bounds), (a.row_of, b.row_of)
        answer, lse = kernels.forward(q, k, v, bounds, rows[0], causal, scale)
        found = kernels.backward(push, q, k, v, answer, lse, bounds, rows, causal, scale)
    for ours, theirs in zip((answer, *found), (expected, *slopes), strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)
"""


def test_tiles_of_several_rows_give_what_each_row_gives():
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    subprocess.run([sys.executable, "-c", CHECK], env=environment, check=True)
