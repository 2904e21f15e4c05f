"""Hearing: what a transcriber makes of a sound, vector by vector.

    posteriors   how likely CTC finds each token at every vector
    attention    how much of each vector every token takes, averaged over the decoder's heads and
                 layers

Both are read off one pass of a copy that shares the weights (`watching`), which also gives the
self-attention of every block of an encoder.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.explaining.watching import cross_attention
from glassformer.models.transcriber import Scored, Transcriber


class Hearing(NamedTuple):
    """What was heard.

    Attributes:
        attention: None for a model without a decoder.
    """

    posteriors: Float[Tensor, "S V"]
    attention: Float[Tensor, "T S"] | None


@torch.no_grad()
def hear(
    model: Transcriber, features: Float[Tensor, "frames M"], tokens: Sequence[int], *, first: int
) -> Hearing:
    """Read a sound, and what was written for it, once more.

    Args:
        first: The token that the decoder starts from.
    """
    device = model.to_token.weight.device
    sound, source = features[None].to(device), Layout.full(1, len(features), device)
    if model.decoder is None:
        return Hearing(_posteriors(model(sound, source=source)), None)
    written = torch.tensor([[first, *tokens]], device=device)
    target = Layout.full(1, len(tokens) + 1, device)
    scored, weights = cross_attention(
        model, lambda watched: watched(sound, written, source=source, target=target)
    )
    return Hearing(_posteriors(scored), weights.float().mean((0, 1))[:-1].cpu())  # not the end's


def _posteriors(scored: Scored) -> Float[Tensor, "S V"]:
    return scored.frames[0].float().softmax(-1).cpu()
