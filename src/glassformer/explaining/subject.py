"""A subject: one input and what the model made of it, as every method of explanation sees it.

A job makes it (see `tasks.explainer`); the methods (`explaining.methods`) ask it two questions:
what are the scores of the targets if the vectors that were read are changed a little (gradients,
attention), and what are they if whole pieces are left out (occlusion, faithfulness).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.explaining.parts import AttentionMap, Branch, Sound, Target
from glassformer.explaining.watching import Maps
from glassformer.models.transformer import Noise


class Subject(ABC):
    """One input, its prediction, and the scores of what is explained.

    Attributes:
        model: The trained model, in eval mode; no method changes it.
        given, answer: The input and the prediction as text.
        pieces: What can be left out: words, tokens, stretches of sound. Joined, they are the text.
        targets: What is explained, the most important first.
        piece_of: The piece that each vector of the frontend is of, and -1 for special tokens; an
            input may be read as several rows.
        sound, beam: What the pictures of some jobs show besides.
        written: Whether the targets are parts of a text rather than labels to choose from.
    """

    model: nn.Module
    given: str
    answer: str
    pieces: tuple[str, ...]
    targets: tuple[Target, ...]
    piece_of: Int[Tensor, "rows T"]
    sound: Sound | None = None
    beam: Sequence[Sequence[Branch]] = ()
    written: bool = False

    @abstractmethod
    def scores(
        self, model: nn.Module, *, copies: int = 1, noise: Noise | None = None
    ) -> Float[Tensor, "copies targets"]:
        """The score of each target, differentiable.

        Args:
            model: The model, or a copy that shares its weights and is watched.
            copies: How often the input is read, each copy's rows after those of the one before,
                so that `noise` may change each differently.
        """

    @abstractmethod
    def scores_of(self, kept: Bool[Tensor, "variants pieces"]) -> Float[Tensor, "variants targets"]:
        """The score of each target if only these pieces are read, without gradients, in batches."""

    @abstractmethod
    def attention_of(self, maps: Maps) -> tuple[AttentionMap, ...]:
        """The weights that `watching` recorded while `scores` ran, with their tokens."""
