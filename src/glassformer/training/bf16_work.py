"""The child process of a bf16 trial on a CPU: a separate program, since it may crash.

Usage: bf16_work.py THREADS. Runs the operations of training (matrix products, attention and
convolutions, forward and backward) in fp32 and in bf16; prints as JSON the seconds of each and how
far apart their results are.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROUNDS, MAX_SECONDS = 7, 5.0  # rounds of each precision, or seconds, whichever comes first
B, T, D, H = 8, 64, 256, 4  # as in a model of size small

Operation = tuple[nn.Module, Callable[[Tensor], Tensor], tuple[int, ...]]


def operations() -> dict[str, Operation]:
    """The operations by name: their weights, function, and input shape."""

    def attend(x: Tensor, **options: object) -> Tensor:
        q, k, v = project(x).view(B, T, 3, H, D // H).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, **options)  # type: ignore[arg-type]

    square, project = nn.Linear(64, 64), nn.Linear(D, 3 * D)
    feedforward = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
    conv = nn.Conv1d(D, D, 3, padding=1)
    depthwise = nn.Conv1d(D, D, 31, padding=15, groups=D)
    conv2d = nn.Sequential(nn.Conv2d(1, 32, 3, stride=2), nn.Conv2d(32, 32, 3, stride=2))
    mask = torch.arange(T) < torch.arange(T // 2, T // 2 + B)[:, None, None, None]
    tokens = (B, T, D)
    return {
        "small product": (square, square, (64, 64)),
        "feed-forward": (feedforward, feedforward, tokens),
        "products of products": (project, lambda x: project(x) @ project(x).mT, tokens),
        "attention": (project, attend, tokens),
        "causal attention": (project, lambda x: attend(x, is_causal=True), tokens),
        "masked attention": (project, lambda x: attend(x, attn_mask=mask), tokens),
        "convolution": (conv, lambda x: conv(x.mT), tokens),
        "depthwise convolution": (depthwise, lambda x: depthwise(x.mT), tokens),
        "2-d convolution": (conv2d, conv2d, (B, 1, T, 80)),
    }


def run(work: dict[str, Operation], inputs: dict[str, Tensor], dtype: torch.dtype) -> list[Tensor]:
    """The output of every operation and the gradients of its input and weights, in fp32."""
    results: list[Tensor] = []
    for name, (module, function, _) in work.items():
        x = inputs[name].clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            y = function(x).float()
        y.square().mean().backward()
        leaves = [x, *module.parameters()]
        results += [y.detach(), *(t.grad.float() for t in leaves if t.grad is not None)]
        module.zero_grad(set_to_none=True)
    return results


def difference(results: list[Tensor], exact: list[Tensor]) -> float:
    """The largest relative error of a tensor, by norm."""
    pairs = zip(results, exact, strict=True)
    errors = [(a - b).norm() / b.norm().clamp(min=1e-12) for a, b in pairs]
    return float(torch.stack(errors).nan_to_num(torch.inf).max())


def compare(dtype: torch.dtype = torch.bfloat16) -> dict[str, float]:
    """Run all operations in fp32 and in `dtype`: the best seconds of each, and their difference."""
    torch.manual_seed(0)
    work = operations()
    inputs = {name: torch.randn(shape) for name, (*_, shape) in work.items()}
    error = difference(run(work, inputs, dtype), run(work, inputs, torch.float32))
    best, began = [torch.inf, torch.inf], time.perf_counter()
    for _ in range(ROUNDS):
        for n, precision in enumerate((torch.float32, dtype)):  # alternating: the machine is shared
            start = time.perf_counter()
            run(work, inputs, precision)
            best[n] = min(best[n], time.perf_counter() - start)
        if time.perf_counter() - began > MAX_SECONDS:
            break
    return {"fp32": best[0], "bf16": best[1], "difference": error}


if __name__ == "__main__":
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dump
    torch.set_num_threads(int(sys.argv[1]))
    json.dump(compare(), sys.stdout)  # a pipe to the process that started this one
