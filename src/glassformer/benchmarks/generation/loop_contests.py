"""Equal prompts through the decoding loop: one, or many at once.

one, many    124M parameters in bf16 on a GPU, against gpt-fast and Hugging Face
small        4M parameters on a CPU, one sequence and sixteen, against Hugging Face
"""

import copy
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.benchmarks.generation import gptfast, hugging_face, ours
from glassformer.benchmarks.generation.contest import Bench, Contest, Peer, Side
from glassformer.benchmarks.generation.correctness import check
from glassformer.benchmarks.generation.llama import GPT2_SIZED, SMALL, TINY, Size, random_model

PROMPT, LENGTH = 32, 256
TINY_LENGTH = 5
GPT_FAST, HUGGING_FACE = "gpt-fast", "Hugging Face"


def one(bench: Bench) -> Iterator[Contest]:
    """A single sequence, on a GPU."""
    yield contest(GPT2_SIZED, 1, bench, torch.bfloat16, bars={GPT_FAST: (1.0, 1.4)})


def many(bench: Bench) -> Iterator[Contest]:
    """64 sequences, on a GPU."""
    yield contest(GPT2_SIZED, 64, bench, torch.bfloat16, bars={GPT_FAST: (1.0, 1.5)})


def small(bench: Bench) -> Iterator[Contest]:
    """A small model, on a CPU."""
    for rows in (1, 16):
        yield contest(SMALL, rows, bench, torch.float32, bars={HUGGING_FACE: (2.0, None)})


def contest(
    size: Size,
    rows: int,
    bench: Bench,
    dtype: torch.dtype,
    bars: dict[str, tuple[float, float | None]],
) -> Contest:
    """The contest of one size."""
    size, length = (TINY, TINY_LENGTH) if bench.small else (size, LENGTH)
    reference = random_model(size, PROMPT + length)
    rng = torch.Generator().manual_seed(0)
    prompts = torch.randint(size.vocabulary, (rows, PROMPT), generator=rng).to(bench.device)
    makes = {HUGGING_FACE: partial(theirs, reference, prompts, length, dtype)}
    remarks = []
    if GPT_FAST in bars:
        if bench.peers is None:
            remarks.append(
                f"nothing is measured against gpt-fast; give --peers a folder with {gptfast.FILE}"
            )
        else:
            model = gptfast.gptfast_model(bench.peers, reference, size, PROMPT + length)
            makes[GPT_FAST] = partial(fast_side, model, prompts, length, dtype)
    return Contest(
        case=f"{rows} x {length} tokens",
        tokens=rows * length,
        ours=partial(our_side, reference, size, prompts, length, dtype),
        peers={name: Peer(make, *bars.get(name, (None, None))) for name, make in makes.items()},
        check=partial(check, reference=copy.deepcopy(reference).to(bench.device), prompts=prompts),
        remarks=remarks,
    )


def our_side(
    reference: Any, size: Size, prompts: Int[Tensor, "B P"], length: int, dtype: torch.dtype
) -> Side:
    """Our model."""
    model = ours.our_model(reference, size, prompts.shape[1] + length)
    return ours.generating(model.to(prompts.device, dtype), prompts, length)


def theirs(reference: Any, prompts: Int[Tensor, "B P"], length: int, dtype: torch.dtype) -> Side:
    """Hugging Face's."""
    model = copy.deepcopy(reference).to(prompts.device, dtype)
    return hugging_face.generating(model, prompts, length)


def fast_side(model: Any, prompts: Int[Tensor, "B P"], length: int, dtype: torch.dtype) -> Side:
    """gpt-fast's."""
    model = model.to(prompts.device, dtype)
    return gptfast.generating(model, prompts, length, compiled=prompts.is_cuda)
