"""Hugging Face's `generate`."""

from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from glassformer.benchmarks.generation.contest import Side, TokenRows


def generating(model: Any, prompts: Int[Tensor, "B P"], length: int) -> Side:
    """Greedy generation, on a GPU with a static cache, with which `generate` compiles its steps."""
    options = {"cache_implementation": "static"} if prompts.is_cuda else {}

    @torch.no_grad()
    def generate() -> TokenRows:
        output = model.generate(
            prompts,
            attention_mask=torch.ones_like(prompts),
            do_sample=False,
            max_new_tokens=length,
            **options,
        )
        rows: TokenRows = output[:, prompts.shape[1] :].tolist()
        return rows

    return generate
