"""The models: a frontend, an encoder or a decoder or both, and an output layer.

    Transformer     encoder and decoder: sequences to sequences          Vaswani et al., 2017
    LanguageModel   a decoder only: the next token                      Radford et al., 2018
    Classifier      an encoder and one prediction for the whole sequence
    MaskedModel     an encoder and a prediction for every position        Devlin et al., 2018

Tokens are padded (B, T) or packed (N,), other samples as their frontend expects them, each with its
Layout. Every model takes `noise`, a function of the frontend's vectors and their layout that
returns the vectors to use instead, with which training perturbs the input.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.core.caches import Cache
from glassformer.core.layout import Layout
from glassformer.core.masks import Mask, causal, everything
from glassformer.core.scoring import capped
from glassformer.core.shapes import Vectors
from glassformer.models.baselines import BaselineDecoder
from glassformer.models.frontends import Frontend, Tokens
from glassformer.models.losses import cross_entropies, summed_cross_entropy
from glassformer.models.stacks import Decoder

TokenIds = Int[Tensor, "B T"] | Int[Tensor, " N"]
Scores = Float[Tensor, "B T V"] | Float[Tensor, "N V"]
ClassScores = Float[Tensor, "B C"] | Float[Tensor, "B members C"]  # the latter in training
Noise = Callable[[Vectors, Layout], Vectors]


class Transformer(nn.Module):
    """Reads a sequence of anything and writes a sequence of tokens.

    Args:
        frontend: From samples to vectors: tokens, sound, images, or a custom one.
        encoder: From vectors to a memory.
        target: The embedding of the target tokens.
        decoder: Attends to the memory and to the tokens so far.
        tie: Whether the output layer shares the weights of `target`.
    """

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        target: Tokens,
        decoder: Decoder | BaselineDecoder,
        *,
        tie: bool = True,
    ) -> None:
        super().__init__()
        self.frontend, self.encoder = frontend, encoder
        self.target, self.decoder = target, decoder
        self.unembed = None if tie else nn.Linear(target.dim, target.vocabulary, bias=False)

    def forward(
        self,
        samples: Tensor,
        tokens: TokenIds,
        *,
        source: Layout,
        target: Layout,
        noise: Noise | None = None,
    ) -> Scores:
        """Scores of each next token, given the true ones before it (teacher forcing)."""
        return self.decode(tokens, target, self.encode(samples, source, noise=noise))

    def encode(
        self, samples: Tensor, layout: Layout, *, noise: Noise | None = None
    ) -> Sequence[Any]:
        """What the decoder attends to, computed once for all its steps."""
        x, layout = embedded(self.frontend, samples, layout, noise)
        return self.decoder.keep(self.encoder(x, layout=layout), layout)

    def decode(
        self,
        tokens: TokenIds,
        layout: Layout,
        memory: Sequence[Any],
        caches: Sequence[Cache] | None = None,
    ) -> Scores:
        """Scores of each next token; with caches, for new tokens that follow those held."""
        x, layout = self.target(tokens, layout)
        x = self.decoder(x, layout=layout, memory=memory, caches=caches)
        return scored(x, self.target, self.unembed)


class LanguageModel(nn.Module):
    """Continues a text.

    Attributes:
        frozen: Whether its weights will never change, so that decoding may lay them out for speed.
    """

    frozen = False

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
        noise: Noise | None = None,
        labels: TokenIds | None = None,
        smoothing: float = 0.0,
    ) -> Scores | Float[Tensor, " N"] | Float[Tensor, ""]:
        """Scores of each next token, or, given the right ones, only their cross-entropy.

        Args:
            labels: The next tokens: then the scores of the whole batch never exist at once, and
                with gradients, only the sum of the cross-entropies is returned.
            smoothing: Label smoothing of that sum.
        """
        x, layout = embedded(self.tokens, tokens, layout, noise)
        x = self.decoder(x, layout=layout, mask=mask, caches=caches)
        if labels is None:
            return scored(x, self.tokens, self.unembed)
        x, labels = x.flatten(0, -2), labels.flatten()
        weight = (self.tokens.table if self.unembed is None else self.unembed).weight
        if not torch.is_grad_enabled():
            return cross_entropies(x, weight, labels, softcap=self.tokens.softcap)
        return summed_cross_entropy(
            x, weight, labels, softcap=self.tokens.softcap, smoothing=smoothing
        )


class MaskedModel(nn.Module):
    """Predicts masked tokens: scores of the token at each position, given both sides."""

    def __init__(self, frontend: Tokens, encoder: nn.Module, *, tie: bool = True) -> None:
        super().__init__()
        self.frontend, self.encoder = frontend, encoder
        self.unembed = None if tie else nn.Linear(frontend.dim, frontend.vocabulary, bias=False)

    def forward(
        self,
        tokens: TokenIds,
        *,
        layout: Layout,
        positions: Int[Tensor, " positions"] | None = None,
        noise: Noise | None = None,
    ) -> Scores | Float[Tensor, "positions V"]:
        """Scores of every token, or only of those at some positions.

        Args:
            positions: Indices into the flattened batch, so that only masked tokens are scored.
        """
        x = self.encoded(tokens, layout=layout, noise=noise)
        if positions is not None:
            x = x.reshape(-1, x.shape[-1])[positions]  # (positions, D)
        return scored(x, self.frontend, self.unembed)

    def encoded(self, tokens: TokenIds, *, layout: Layout, noise: Noise | None = None) -> Vectors:
        """A vector for every token, which the tokens of the vocabulary are scored by."""
        x, layout = embedded(self.frontend, tokens, layout, noise)
        return self.encoder(x, layout=layout)


class Classifier(nn.Module):
    """One prediction for a sequence: encode, pool over the real tokens, score the classes.

    Args:
        to_class: From a pooled vector to the scores of the classes.
        members: How many networks the parts are ensembles of.
    """

    def __init__(
        self,
        frontend: Frontend,
        encoder: nn.Module,
        pool: nn.Module,
        to_class: nn.Module,
        *,
        members: int = 1,
    ) -> None:
        super().__init__()
        self.frontend, self.encoder, self.pool = frontend, encoder, pool
        self.to_class, self.members = to_class, members

    def forward(
        self,
        samples: Tensor,
        *,
        layout: Layout,
        mask: Mask = everything,
        noise: Noise | None = None,
    ) -> ClassScores:
        """Scores of the classes, one row for each sequence.

        In training, the members of an ensemble are scored apart, so that each learns by itself;
        otherwise their mean is the answer.
        """
        scores = self.to_class(self.pooled(samples, layout=layout, mask=mask, noise=noise))
        if self.members == 1:
            return scores
        each = scores.unflatten(-1, (self.members, -1))  # (B, members, C)
        return each if self.training else each.mean(1)

    def pooled(
        self,
        samples: Tensor,
        *,
        layout: Layout,
        mask: Mask = everything,
        noise: Noise | None = None,
    ) -> Float[Tensor, "B D"]:
        """One vector for each sequence, which the classes are scored by."""
        x, layout = embedded(self.frontend, samples, layout, noise)
        return self.pool(self.encoder(x, layout=layout, mask=mask), layout)


def embedded(
    frontend: Frontend, samples: Tensor, layout: Layout, noise: Noise | None
) -> tuple[Vectors, Layout]:
    """The frontend's vectors, perturbed by `noise` if given."""
    x, layout = frontend(samples, layout)
    return (x if noise is None else noise(x, layout)), layout


def scored(x: Vectors, tokens: Tokens, unembed: nn.Linear | None) -> Scores:
    """A score for every token of the vocabulary, by its embedding or by separate weights."""
    return capped(tokens.scores(x) if unembed is None else unembed(x), tokens.softcap)
