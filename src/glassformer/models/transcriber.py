"""Transcriber: reads sound and writes text, by CTC, by attention, or by both.

    sound -> frontend -> encoder -> scores of every frame                 CTC; Graves et al., 2006
                                 -> decoder -> scores of each next token  attention

Trained together, they help each other: CTC keeps attention from left to right, and attention knows
which tokens follow which. Watanabe et al., "Hybrid CTC/Attention Architecture", 2017.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, everything
from glassformer.core.shapes import Vectors
from glassformer.models.baselines import BaselineDecoder
from glassformer.models.frontends import Frontend, Tokens
from glassformer.models.stacks import Decoder, Encoder
from glassformer.models.transformer import Noise, Scores, TokenIds, embedded, scored


class Heard(NamedTuple):
    """What the encoder makes of a batch of sounds: vectors, and their layout.

    Attributes:
        halfway: The vectors after half of the blocks, where they are learned from.
    """

    vectors: Vectors
    layout: Layout
    halfway: Vectors | None = None


class Scored(NamedTuple):
    """The scores of a batch.

    Attributes:
        frames: Of every frame, for CTC.
        written: Of each next token, given the true ones before it; None without a decoder.
        halfway: Of every frame, after half of the encoder's blocks.
    """

    frames: Float[Tensor, "B S V"]
    written: Scores | None = None
    halfway: Float[Tensor, "B S V"] | None = None


class Transcriber(nn.Module):
    """Sound to text.

    Args:
        frontend: From features to fewer vectors.
        encoder: From vectors to a memory.
        vocabulary: How many tokens there are; one of them is the blank of CTC.
        target, decoder: What attends to the memory and writes; None for CTC alone.
        tie: Whether the decoder's output layer shares the weights of `target`.

    Attributes:
        halves: Whether, while training, frames are also scored after half of the encoder's blocks,
            by the same weights. Lee and Watanabe, "Intermediate Loss Regularization", 2021.
        mask: What the encoder sees, if nothing else is passed: chunks of limited context if it is
            trained for streams.
    """

    halves = False
    mask: Mask = everything

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        vocabulary: int,
        *,
        target: Tokens | None = None,
        decoder: Decoder | BaselineDecoder | None = None,
        tie: bool = True,
    ) -> None:
        super().__init__()
        self.frontend, self.encoder = frontend, encoder
        self.to_token = nn.Linear(frontend.dim, vocabulary)
        self.target, self.decoder, self.unembed = target, decoder, None
        if target is not None and not tie:
            self.unembed = nn.Linear(target.dim, vocabulary, bias=False)

    def forward(
        self,
        features: Float[Tensor, "B frames M"],
        tokens: TokenIds | None = None,
        *,
        source: Layout,
        target: Layout | None = None,
        vectors: int | None = None,
        mask: Mask | None = None,
        noise: Noise | None = None,
    ) -> Scored:
        """Scores of every frame, and of each next token given the true ones before it.

        Args:
            tokens: What the decoder has written; None for the scores of frames alone.
            vectors: How many vectors the frontend makes of the batch, where that is known: then
                no encoder computes padding.
        """
        heard = self.listen(features, source, vectors=vectors, mask=mask, noise=noise)
        frames = self.to_token(heard.vectors)
        halfway = None if heard.halfway is None else self.to_token(heard.halfway)
        if tokens is None or target is None:
            return Scored(frames, None, halfway)
        return Scored(frames, self.decode(tokens, target, self.keep(heard)), halfway)

    def listen(
        self,
        features: Float[Tensor, "B frames M"],
        layout: Layout,
        *,
        vectors: int | None = None,
        mask: Mask | None = None,
        noise: Noise | None = None,
    ) -> Heard:
        """What the encoder makes of sounds."""
        mask = self.mask if mask is None else mask
        x, layout = embedded(self.frontend, features, layout, noise)
        if layout.tokens is None:
            layout = replace(layout, tokens=vectors)
        if not (self.halves and self.training):
            return Heard(self.encoder(x, layout=layout, mask=mask), layout)
        assert isinstance(self.encoder, Encoder)
        half = len(self.encoder.blocks) // 2
        halfway, last = self.encoder.outputs(x, layout=layout, mask=mask, after=(half,))
        return Heard(last, layout, halfway)

    def keep(self, heard: Heard) -> Sequence[Any]:
        """What the decoder attends to, computed once for all its steps."""
        assert self.decoder is not None
        return self.decoder.keep(heard.vectors, heard.layout)

    def decode(
        self, tokens: TokenIds, layout: Layout, memory: Sequence[Any], caches: Any = None
    ) -> Scores:
        """Scores of each next token; with caches, for new tokens that follow those held."""
        assert self.target is not None
        assert self.decoder is not None
        x, layout = self.target(tokens, layout)
        x = self.decoder(x, layout=layout, memory=memory, caches=caches)
        return scored(x, self.target, self.unembed)
