"""A subject: one input and what the model made of it, as every method of explanation sees it.

A job makes it (see `tasks.explainer`); the methods (`explaining.methods`) ask it two questions:
what are the scores of the targets if the vectors that were read are changed a little (gradients,
attention), and what are they if whole pieces are left out (occlusion, faithfulness).

A score is the log-odds of a target, log p / (1 - p), which has a gradient however sure the model
is. Batches are padded.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.explaining.parts import AttentionMap, Branch, Image, Sound, Target
from glassformer.explaining.watching import Maps
from glassformer.models.transformer import Noise


class Subject(ABC):
    """One input, its prediction, and the scores of what is explained.

    Attributes:
        model: The trained model, in eval mode; no method changes it.
        given, answer: The input and the prediction as text.
        pieces: What can be left out: words, tokens, stretches of sound. Joined, they are the text.
        targets: What is explained, the most important first.
        piece_of: The piece that each vector of the frontend is of, and -1 for special tokens and
            padding; an input may be read as several rows.
        readers: How much each target is read off each vector of the last layer, in each member of
            an ensemble: 1 at a position, or the weights of a pool. None where no attention leads
            there.
        blank: Vectors that say nothing; zeros by default. Near zero, a norm makes much of little,
            so integrated gradients need many steps from there.
        readable: Which pieces each target can depend on; all by default.
        by_ngrams_alone: Whether n-grams make the prediction, whatever the network says.
        notes: Sentences on what of the input is missing.
        strange: The pieces in which something was not seen in training.
        reason: Why the job gives no answer; what is explained is then its guess.
        progress: Told how many parts of a long computation are done, of how many.
    """

    model: nn.Module
    given: str
    answer: str
    pieces: tuple[str, ...]
    targets: tuple[Target, ...]
    piece_of: Int[Tensor, "rows T"]
    readers: Float[Tensor, "members targets rows Q"] | None = None
    blank: Float[Tensor, "rows T D"] | None = None
    readable: Bool[Tensor, "targets pieces"] | None = None
    by_ngrams_alone: bool = False
    notes: tuple[str, ...] = ()
    strange: Collection[int] = ()
    reason: str = ""
    progress: Callable[[int, int], None] = staticmethod(lambda done, total: None)

    @abstractmethod
    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        """The log-odds of each target, differentiable.

        Args:
            model: The model, or a copy that shares its weights and is watched.
            copies: How often the input is read, each copy's rows after those of the one before,
                so that `noise` may change each differently.
        """

    @abstractmethod
    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        """The same if only these pieces are read, without gradients, in batches."""

    @abstractmethod
    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        """The weights that `watching` recorded while `scores` ran, with their tokens."""

    def ngram_influence(self) -> Float[Tensor, "targets pieces"] | None:
        """What a linear model of n-grams that the run keeps says of each piece, if there is one."""
        return None

    @property
    def sound(self) -> Sound | None:
        """The recording that was read, for a picture of it."""
        return None

    @property
    def image(self) -> Image | None:
        """The image that was read, for a picture of it."""
        return None

    @property
    def beam(self) -> Sequence[Sequence[Branch]]:
        """The branches of the search that wrote the answer, for a picture of it."""
        return ()

    def baseline(self, x: Float[Tensor, "rows T D"]) -> Float[Tensor, "rows T D"]:
        """The vectors of an input whose pieces say nothing."""
        blank = torch.zeros_like(x) if self.blank is None else self.blank
        return torch.where((self.piece_of >= 0)[..., None], blank, x)

    def by_piece(self, values: Float[Tensor, "targets rows T"]) -> Float[Tensor, "targets pieces"]:
        """Values of the frontend's vectors, summed up for each piece."""
        inside = self.piece_of >= 0
        total = values.new_zeros(len(values), len(self.pieces))
        return total.index_add(1, self.piece_of[inside], values[:, inside])


def log_odds(
    logits: Float[Tensor, "*rows C"], chosen: Int[Tensor, "*rows"]
) -> Float[Tensor, "*rows"]:
    """The log-odds of one of several choices in each row, log p / (1 - p), from their logits."""
    place = chosen[..., None]
    others = logits.scatter(-1, place, -torch.inf).logsumexp(-1)
    return logits.gather(-1, place)[..., 0] - others
