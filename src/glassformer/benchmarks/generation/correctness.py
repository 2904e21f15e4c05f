"""Whether all sides did the same work.

In fp32 they generate the same tokens. In bf16 each rounds differently, and where two tokens are
almost equally likely, texts part; so each text is read by a reference in fp32, which must find
every token of it the likeliest, or nearly so, after those before it.
"""

from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from glassformer.benchmarks.generation.contest import TokenRows
from glassformer.errors import GlassformerError

NEARLY = 0.25  # standard deviations of the scores below the best; a random token lies about 4 below
TOGETHER = 4  # rows read at once: a table of all scores is large


@torch.no_grad()
def shortfall(
    reference: Any, prompts: Int[Tensor, "B P"], rows: Int[Tensor, "B L"]
) -> Float[Tensor, "B L"]:
    """How far the score of each token lies below the best, in standard deviations of the scores."""
    found = []
    for prompt, row in zip(prompts.split(TOGETHER), rows.split(TOGETHER), strict=True):
        scores = reference(torch.cat([prompt, row[:, :-1]], 1)).logits[:, prompt.shape[1] - 1 :]
        chosen = scores.gather(-1, row[..., None])[..., 0]
        found.append((scores.amax(-1) - chosen) / scores.std(-1))
    return torch.cat(found)


def check(
    outputs: Mapping[str, TokenRows], reference: Any, prompts: Int[Tensor, "B P"]
) -> list[str]:
    """Refuse a side that generated other than the likeliest tokens; say how many rows agree."""
    (ours, first), *others = outputs.items()
    for name, rows in outputs.items():
        worst = shortfall(reference, prompts, torch.tensor(rows, device=prompts.device)).amax()
        if not worst <= NEARLY:
            raise GlassformerError(
                f"{name} generates tokens {worst:.2f} standard deviations below the likeliest; "
                f"its weights or its decoding are wrong, so nothing is timed"
            )
    same = {
        name: sum(list(a) == list(b) for a, b in zip(first, rows, strict=True))
        for name, rows in others
    }
    return [
        f"{count} of {len(first)} rows of {ours} and {name} agree" for name, count in same.items()
    ]
