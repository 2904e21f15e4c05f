"""A subject with one target: what faithfulness is measured on.

Of labels it is the prediction. Of a written text it is the part that depends most on what was read:
a comma would be written anyway.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from glassformer.explaining.parts import AttentionMap, are_written
from glassformer.explaining.subject import Subject
from glassformer.explaining.watching import Maps
from glassformer.models.transformer import Noise


def focused(subject: Subject) -> Subject:
    """The subject with the target that matters most."""
    if len(subject.targets) == 1:
        return subject
    if not are_written(subject.targets):
        return OneTarget(subject, 0)
    pieces = len(subject.pieces)
    with_all, with_none = subject.scores_of(torch.tensor([[True] * pieces, [False] * pieces]))
    return OneTarget(subject, int((with_all - with_none).argmax()))


class OneTarget(Subject):
    """Another subject with one of its targets."""

    def __init__(self, subject: Subject, target: int) -> None:
        self.subject, self.place = subject, slice(target, target + 1)
        self.model, self.given, self.answer = subject.model, subject.given, subject.answer
        self.pieces, self.piece_of = subject.pieces, subject.piece_of
        self.targets = subject.targets[self.place]
        self.by_ngrams_alone = subject.by_ngrams_alone
        if subject.readers is not None:
            self.readers = subject.readers[:, self.place]

    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        return self.subject.scores(model, copies=copies, noise=noise)[:, self.place]

    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        return self.subject.scores_of(kept)[:, self.place]

    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        return self.subject.attention_of(maps)

    def baseline(self, x: Float[Tensor, "rows T D"]) -> Float[Tensor, "rows T D"]:
        return self.subject.baseline(x)

    def ngram_influence(self) -> Float[Tensor, "targets pieces"] | None:
        found = self.subject.ngram_influence()
        return None if found is None else found[self.place]
