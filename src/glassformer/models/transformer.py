"""The models: a frontend, an encoder, a decoder, and what they say.

    Transformer     encoder and decoder: sequences to sequences          Vaswani et al., 2017
    LanguageModel   a decoder alone: the next token                      Radford et al., 2018
    Classifier      an encoder and one answer for the whole sequence
    MaskedModel     an encoder and an answer for every position          Devlin et al., 2018

Tokens come padded (B, T) or packed (N,), other samples as their frontend takes them, each with its
Layout.
"""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.caches import Cache
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, causal, everything
from glassformer.core.shapes import Vectors
from glassformer.models.baselines.bahdanau import BahdanauDecoder
from glassformer.models.frontends import Frontend, Tokens
from glassformer.models.stacks import Decoder

TokenIds = Int[Tensor, "B T"] | Int[Tensor, " N"]
Scores = Float[Tensor, "B T V"] | Float[Tensor, "N V"]


class Transformer(nn.Module):
    """Reads a sequence of anything and writes a sequence of tokens.

    Args:
        frontend: From samples to vectors: tokens, sound, images, or one's own.
        encoder: From vectors to a memory.
        target: The embedding of the tokens to be written.
        decoder: Looks at the memory and at what is written so far.
        tie: Whether the answer is scored with the weights of `target`.
    """

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        target: Tokens,
        decoder: Decoder | BahdanauDecoder,
        *,
        tie: bool = True,
    ) -> None:
        super().__init__()
        self.frontend, self.encoder = frontend, encoder
        self.target, self.decoder = target, decoder
        self.unembed = None if tie else nn.Linear(target.dim, target.vocabulary, bias=False)

    def forward(
        self, samples: Tensor, tokens: TokenIds, *, source: Layout, target: Layout
    ) -> Scores:
        """Scores of each next token, given the true ones before it (teacher forcing)."""
        return self.decode(tokens, target, self.encode(samples, source))

    def encode(self, samples: Tensor, layout: Layout) -> Sequence[Any]:
        """What the decoder looks at, computed once for all its steps."""
        x, layout = self.frontend(samples, layout)
        return self.decoder.keep(self.encoder(x, layout=layout), layout)

    def decode(
        self,
        tokens: TokenIds,
        layout: Layout,
        memory: Sequence[Any],
        caches: Sequence[Cache] | None = None,
    ) -> Scores:
        """Scores of each next token; with caches, for new tokens that stand after those held."""
        x, layout = self.target(tokens, layout)
        x = self.decoder(x, layout=layout, memory=memory, caches=caches)
        return scored(x, self.target, self.unembed)


class LanguageModel(nn.Module):
    """Continues a text: scores of each next token."""

    def __init__(self, tokens: Tokens, decoder: Decoder, *, tie: bool = True) -> None:
        super().__init__()
        self.tokens, self.decoder = tokens, decoder
        self.unembed = None if tie else nn.Linear(tokens.dim, tokens.vocabulary, bias=False)

    def forward(
        self,
        tokens: TokenIds,
        *,
        layout: Layout,
        mask: Mask = causal,
        caches: Sequence[Cache] | None = None,
    ) -> Scores:
        x, layout = self.tokens(tokens, layout)
        x = self.decoder(x, layout=layout, mask=mask, caches=caches)
        return scored(x, self.tokens, self.unembed)


class MaskedModel(nn.Module):
    """Fills gaps: scores of the token at each position, both sides seen."""

    def __init__(self, tokens: Tokens, encoder: nn.Module, *, tie: bool = True) -> None:
        super().__init__()
        self.tokens, self.encoder = tokens, encoder
        self.unembed = None if tie else nn.Linear(tokens.dim, tokens.vocabulary, bias=False)

    def forward(self, tokens: TokenIds, *, layout: Layout) -> Scores:
        x, layout = self.tokens(tokens, layout)
        return scored(self.encoder(x, layout=layout), self.tokens, self.unembed)


class Classifier(nn.Module):
    """One answer for a whole sequence: encode, pool over the real tokens, score the classes."""

    def __init__(
        self, frontend: Frontend, encoder: nn.Module, pool: nn.Module, classes: int
    ) -> None:
        super().__init__()
        self.frontend, self.encoder, self.pool = frontend, encoder, pool
        self.to_class = nn.Linear(frontend.dim, classes)

    def forward(
        self, samples: Tensor, *, layout: Layout, mask: Mask = everything
    ) -> Float[Tensor, "B C"]:
        x, layout = self.frontend(samples, layout)
        return self.to_class(self.pool(self.encoder(x, layout=layout, mask=mask), layout))


def scored(x: Vectors, tokens: Tokens, unembed: nn.Linear | None) -> Scores:
    """A score for every token of the vocabulary, by its embedding or by weights of its own."""
    return tokens.scores(x) if unembed is None else unembed(x)
