"""The work of a trial of bf16 on a CPU: started as a program of its own, since it may die.

Usage: bf16_work.py THREADS. Does what training does, products, attention and convolutions, forward
and backward, in fp32 and in bf16; answers in JSON how far apart the answers are, and the seconds.
"""

import contextlib
import json
import sys
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROUNDS, ENOUGH = 7, 5.0  # rounds of each precision, or seconds, whichever comes first
B, T, D, H = 8, 64, 256, 4  # as in a model of size small

Part = tuple[nn.Module, Callable[[Tensor], Tensor], tuple[int, ...]]


def parts() -> dict[str, Part]:
    """What is computed, by name: weights, the function that uses them, the shape of its input."""

    def attend(x: Tensor, **how: object) -> Tensor:
        q, k, v = project(x).view(B, T, 3, H, D // H).permute(2, 0, 3, 1, 4)
        return F.scaled_dot_product_attention(q, k, v, **how)  # type: ignore[arg-type]

    square, project = nn.Linear(64, 64), nn.Linear(D, 3 * D)
    feedforward = nn.Sequential(nn.Linear(D, 4 * D), nn.GELU(), nn.Linear(4 * D, D))
    along, deep = nn.Conv1d(D, D, 3, padding=1), nn.Conv1d(D, D, 31, padding=15, groups=D)
    flat = nn.Sequential(nn.Conv2d(1, 32, 3, stride=2), nn.Conv2d(32, 32, 3, stride=2))
    seen = torch.arange(T) < torch.arange(T // 2, T // 2 + B)[:, None, None, None]
    tokens = (B, T, D)
    return {
        "a small product": (square, square, (64, 64)),
        "feed-forward": (feedforward, feedforward, tokens),
        "products of products": (project, lambda x: project(x) @ project(x).mT, tokens),
        "attention": (project, attend, tokens),
        "causal attention": (project, lambda x: attend(x, is_causal=True), tokens),
        "masked attention": (project, lambda x: attend(x, attn_mask=seen), tokens),
        "convolution": (along, lambda x: along(x.mT), tokens),
        "depthwise convolution": (deep, lambda x: deep(x.mT), tokens),
        "convolution of pictures": (flat, flat, (B, 1, T, 80)),
    }


def answers(work: dict[str, Part], inputs: dict[str, Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Outputs of every part and the gradients of its input and weights, in fp32."""
    found: list[Tensor] = []
    for name, (module, function, _) in work.items():
        x = inputs[name].clone().requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            y = function(x).float()
        y.square().mean().backward()
        learned = [x, *module.parameters()]
        found += [y.detach(), *(t.grad.float() for t in learned if t.grad is not None)]
        module.zero_grad(set_to_none=True)
    return found


def difference(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """The largest distance between two tensors, relative to the length of the second."""
    apart = [(a - b).norm() / b.norm().clamp(min=1e-12) for a, b in zip(ours, theirs, strict=True)]
    return float(torch.stack(apart).nan_to_num(torch.inf).max())


def compare(dtype: torch.dtype = torch.bfloat16) -> dict[str, float]:
    """Do the work in fp32 and in `dtype`: the best seconds of each, and how far they are apart."""
    torch.manual_seed(0)
    work = parts()
    inputs = {name: torch.randn(shape) for name, (*_, shape) in work.items()}
    apart = difference(answers(work, inputs, dtype), answers(work, inputs, torch.float32))
    best, began = [torch.inf, torch.inf], time.perf_counter()
    for _ in range(ROUNDS):
        for place, precision in enumerate((torch.float32, dtype)):  # by turns: others work here too
            start = time.perf_counter()
            answers(work, inputs, precision)
            best[place] = min(best[place], time.perf_counter() - start)
        if time.perf_counter() - began > ENOUGH:
            break
    return {"fp32": best[0], "bf16": best[1], "difference": apart}


if __name__ == "__main__":
    with contextlib.suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # leave no core dump behind
    torch.set_num_threads(int(sys.argv[1]))
    json.dump(compare(), sys.stdout)  # a pipe to the process that started this one
