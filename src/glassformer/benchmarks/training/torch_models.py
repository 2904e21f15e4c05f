"""The same models in torch.nn, each returning its loss, in the form that suits torch best.

Dropout applies where ours does: to embeddings and residuals. Positions are learned vectors, which
cost less than rotary ones. Padding of targets is not masked: as it stands at the end of rows and
attention is causal, no real token sees it, and torch may use its causal kernel. `like` is our
model, which knows the sizes of its vocabularies. Layers are compiled one by one for each shape of a
batch, since layers share a compilation; for all shapes at once they are slower than eager ones.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from glassformer.benchmarks.training.padding import IGNORED
from glassformer.config import ModelConfig, StackConfig
from glassformer.core.layout import Layout

Ids = Int[Tensor, "B T"]
Padding = Bool[Tensor, "B T"]


class Embedding(nn.Module):
    """Tokens and positions as vectors."""

    def __init__(self, vocabulary: int, stack: StackConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, stack.dim)
        self.positions = nn.Embedding(stack.max_length, stack.dim)
        self.dropout = nn.Dropout(stack.dropout)
        self.scale = math.sqrt(stack.dim)
        nn.init.normal_(self.tokens.weight, std=1 / self.scale)

    def forward(self, ids: Ids) -> Float[Tensor, "B T D"]:
        """The vector of each token plus that of its position."""
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.dropout(self.tokens(ids) * self.scale + self.positions(places))


class TokenLoss(nn.Module):
    """Cross-entropy over a vocabulary, by its embedding."""

    def __init__(self, smoothing: float = 0.0) -> None:
        super().__init__()
        self.smoothing = smoothing

    def forward(
        self, x: Float[Tensor, "N D"], weight: Float[Tensor, "V D"], labels: Int[Tensor, " N"]
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy of the labels."""
        scores = F.linear(x, weight).float()
        return F.cross_entropy(scores, labels, ignore_index=IGNORED, label_smoothing=self.smoothing)


class PairPeer(nn.Module):
    """torch.nn.Transformer, with the embeddings that ours shares and ties."""

    def __init__(self, like: Any, model: ModelConfig, smoothing: float) -> None:
        super().__init__()
        encoder, decoder = model.encoder, model.decoder
        assert encoder is not None
        assert decoder is not None
        self.loss = TokenLoss(smoothing)
        self.target = Embedding(like.target.vocabulary, decoder)
        shared = like.frontend is like.target
        self.source = self.target if shared else Embedding(like.frontend.vocabulary, encoder)
        self.transformer = nn.Transformer(
            encoder.dim,
            encoder.attention.heads,
            custom_encoder=torch_encoder(encoder),
            custom_decoder=torch_decoder(decoder),
            batch_first=True,
        )

    def forward(
        self,
        source: Int[Tensor, "B S"],
        padding: Bool[Tensor, "B S"],
        inputs: Int[Tensor, "B T"],
        labels: Int[Tensor, "B T"],
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy of the next tokens of the target."""
        later = nn.Transformer.generate_square_subsequent_mask(
            inputs.shape[1], device=inputs.device, dtype=torch.float32
        )
        x = self.transformer(
            self.source(source),
            self.target(inputs),
            tgt_mask=later,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        return self.loss(x.flatten(0, 1), self.target.tokens.weight, labels.flatten())


class TextPeer(nn.Module):
    """torch.nn.TransformerEncoder with the mean of its vectors."""

    def __init__(self, like: Any, encoder: StackConfig, smoothing: float) -> None:
        super().__init__()
        self.embedding = Embedding(like.frontend.vocabulary, encoder)
        self.encoder, self.smoothing = torch_encoder(encoder), smoothing
        self.to_class = nn.Linear(encoder.dim, like.to_class.out_features)

    def forward(self, ids: Ids, padding: Padding, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """The mean cross-entropy of the labels."""
        x = self.encoder(self.embedding(ids), src_key_padding_mask=padding)
        real = ~padding[..., None]
        mean = (x * real).sum(1) / real.sum(1)  # (B, D)
        logits = self.to_class(mean).float()
        return F.cross_entropy(logits, labels, label_smoothing=self.smoothing)


class EncoderPeer(nn.Module):
    """torch.nn.TransformerEncoder between the frontend, the pool and the last layer of ours."""

    def __init__(self, like: Any, encoder: StackConfig, smoothing: float) -> None:
        super().__init__()
        self.frontend, self.pool, self.to_class = like.frontend, like.pool, like.to_class
        self.encoder, self.smoothing = torch_encoder(encoder), smoothing

    def forward(self, ids: Ids, padding: Padding, labels: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """The mean cross-entropy of the labels."""
        layout = Layout.padded((~padding).sum(1), longest=ids.shape[1])
        x, layout = self.frontend(ids, layout)
        x = self.pool(self.encoder(x, src_key_padding_mask=padding), layout)
        return F.cross_entropy(self.to_class(x), labels, label_smoothing=self.smoothing)


class GapPeer(nn.Module):
    """torch.nn.TransformerEncoder that scores the vocabulary in gaps alone."""

    def __init__(self, like: Any, encoder: StackConfig) -> None:
        super().__init__()
        self.embedding = Embedding(like.frontend.vocabulary, encoder)
        self.encoder, self.loss = torch_encoder(encoder), TokenLoss()

    def forward(
        self, ids: Ids, padding: Padding, places: Int[Tensor, " gaps"], labels: Int[Tensor, " gaps"]
    ) -> Float[Tensor, ""]:
        """The mean cross-entropy of the tokens in the gaps."""
        x = self.encoder(self.embedding(ids), src_key_padding_mask=padding)
        return self.loss(x.flatten(0, 1)[places], self.embedding.tokens.weight, labels)


def compile_parts(model: nn.Module) -> None:
    """Compile what the peers consist of; a model of other parts is compiled as a whole."""
    torch._dynamo.config.recompile_limit = 64
    parts = (Embedding, TokenLoss, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
    found: list[nn.Module] = [part for part in model.modules() if isinstance(part, parts)]
    for part in found or [model]:
        part.compile(dynamic=isinstance(part, TokenLoss))  # the number of gaps differs


def torch_encoder(stack: StackConfig) -> nn.TransformerEncoder:
    """An encoder of the same sizes, ending in a norm if its norms come first."""
    layer = nn.TransformerEncoderLayer(**options(stack))
    layer.dropout, layer.self_attn.dropout = nn.Dropout(0.0), 0.0
    return nn.TransformerEncoder(layer, stack.depth, last_norm(stack), enable_nested_tensor=False)


def torch_decoder(stack: StackConfig) -> nn.TransformerDecoder:
    """A decoder of the same sizes."""
    layer = nn.TransformerDecoderLayer(**options(stack))
    layer.dropout = nn.Dropout(0.0)
    layer.self_attn.dropout = layer.multihead_attn.dropout = 0.0
    return nn.TransformerDecoder(layer, stack.depth, last_norm(stack))


def options(stack: StackConfig) -> dict[str, Any]:
    """The arguments of a layer."""
    return {
        "d_model": stack.dim,
        "nhead": stack.attention.heads,
        "dim_feedforward": stack.hidden,
        "dropout": stack.dropout,
        "activation": stack.feedforward.kind,
        "batch_first": True,
        "norm_first": stack.order == "pre",
    }


def last_norm(stack: StackConfig) -> nn.LayerNorm | None:
    """The norm after the last layer."""
    return nn.LayerNorm(stack.dim) if stack.order == "pre" else None
