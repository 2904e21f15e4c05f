"""An ensemble: equal networks side by side in one model, which answers with the mean of them all.

    vectors = [member 1 | member 2 | ...]        along the channels

Each member has its own share of the channels from the frontend to the scores, and nothing passes
between them: trained together, each learns as it would alone, but for the norm that gradients are
clipped to. They differ by their initial weights and by dropout, so their mistakes partly cancel
out. Lakshminarayanan et al., 2017.
"""

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.shapes import Vectors
from glassformer.models.frontends import Frontend
from glassformer.models.transformer import Classifier


class FrontendEnsemble(nn.Module):
    """Frontends of one kind that all read the same samples, their vectors side by side."""

    def __init__(self, members: Sequence[Frontend]) -> None:
        super().__init__()
        self.members = nn.ModuleList(cast(Sequence[nn.Module], members))
        self.dim = sum(member.dim for member in members)

    def forward(self, samples: Tensor, layout: Layout) -> tuple[Vectors, Layout]:
        """The vectors of all members and their layout, which is the same for all."""
        vectors, layouts = zip(*(member(samples, layout) for member in self.members), strict=True)
        return torch.cat(vectors, -1), layouts[0]


class Ensemble(nn.Module):
    """Modules of one kind, each of which reads its own share of the channels."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(
        self, x: Float[Tensor, "*places inside"], *args: Any, **call: Any
    ) -> Float[Tensor, "*rows outside"]:
        """What all members answer, side by side; the rest of the call is the same for all."""
        return torch.cat([member(share, *args, **call) for member, share in self.shares(x)], -1)

    def shares(self, x: Float[Tensor, "*places inside"]) -> Iterator[tuple[nn.Module, Tensor]]:
        """Each member with its share of the channels."""
        return zip(self.members, x.chunk(len(self.members), -1), strict=True)


def ensemble_of(members: Sequence[Classifier]) -> Classifier:
    """One classifier of several equal ones."""
    if len(members) == 1:
        return members[0]
    return Classifier(
        FrontendEnsemble([member.frontend for member in members]),
        Ensemble([member.encoder for member in members]),
        Ensemble([member.pool for member in members]),
        Ensemble([member.to_class for member in members]),
        members=len(members),
    )


def members_of(module: object) -> list[nn.Module]:
    """The members of an ensemble; of any other module, the module itself."""
    if isinstance(module, Ensemble | FrontendEnsemble):
        return [*module.members]
    assert isinstance(module, nn.Module)
    return [module]
