"""A blank: the vector of a token that says nothing in particular, where gradients start from.

    blank = u · mean ‖x‖,   u the direction of mean x, over all tokens of the vocabulary

The mean alone would be short, and a norm makes much of little near zero. The vector of a mask, or
of an unknown token, says nothing only to a model that has met it in training.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.core.layout import Layout
from glassformer.models.frontends import Frontend


@torch.no_grad()
def blank_token(frontend: Frontend, vocabulary: int, device: torch.device) -> Float[Tensor, " D"]:
    """The blank of a frontend that reads so many tokens."""
    every = torch.arange(vocabulary, device=device)[:, None]  # each in a row of its own
    x, _ = frontend(every, Layout.full(vocabulary, 1, device))
    x = x[:, 0].float()
    return F.normalize(x.mean(0), dim=0) * x.norm(dim=1).mean()
