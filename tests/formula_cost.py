"""What a model costs: parameters and floating-point operations, counted from the layers built.

A multiplication and the addition that follows it count as two. Only matrix products and
convolutions count; norms, curves and softmax are small beside them. Attention counts every query
with every key of its row, as kernels that do not skip do; a causal kernel does about half of that.
Frontends and pooling are left out; lengths are those after the frontend.
"""

from dataclasses import dataclass

from torch import nn

from glassformer.core.attention import MultiHeadAttention
from glassformer.core.kinds import KINDS
from glassformer.core.positions import Position, Shaw, TransformerXL
from glassformer.models.stacks import Decoder, Encoder
from glassformer.models.transformer import Classifier, LanguageModel, MaskedModel, Transformer


@dataclass(frozen=True)
class Batch:
    """How much goes through a model: `rows` sequences of `length` tokens, each beside `source`."""

    rows: int
    length: int
    source: int = 0

    @property
    def tokens(self) -> int:
        """Those of the sequences, without the source."""
        return self.rows * self.length

    @property
    def read(self) -> "Batch":
        """The source as a batch of its own."""
        return Batch(self.rows, self.source)


def parameters(model: nn.Module) -> int:
    """How many numbers are learned; shared ones count once."""
    return sum(weight.numel() for weight in model.parameters())


def forward_flops(model: nn.Module, batch: Batch) -> int:
    """Operations of one pass forward; a training step takes about three times as many."""
    if isinstance(model, Transformer):
        read = forward_flops(model.encoder, batch.read)
        return read + forward_flops(model.decoder, batch) + _scores(model.target, batch.tokens)
    if isinstance(model, LanguageModel):
        return forward_flops(model.decoder, batch) + _scores(model.tokens, batch.tokens)
    if isinstance(model, MaskedModel):
        return forward_flops(model.encoder, batch) + _scores(model.frontend, batch.tokens)
    if isinstance(model, Classifier):
        return forward_flops(model.encoder, batch) + 2 * batch.rows * model.to_class.weight.numel()
    if isinstance(model, Encoder | Decoder):
        inside = sum(_layer(name, layer, batch) for name, layer in model.blocks.named_modules())
        return inside + len(model.blocks) * _position(model.position, batch)
    raise _not_known(model)


def _layer(name: str, layer: nn.Module, batch: Batch) -> int:
    """One layer's share; of modules that contain others, only what they do themselves."""
    across = "cross_attention" in name
    if isinstance(layer, MultiHeadAttention):
        keys = batch.source if across else batch.length
        widths = layer.key_width + layer.value_width
        return 2 * batch.tokens * keys * layer.heads * widths
    if isinstance(layer, nn.Linear):
        from_memory = across and name.endswith(("to_k", "to_v"))
        return 2 * layer.weight.numel() * (batch.read.tokens if from_memory else batch.tokens)
    if isinstance(layer, nn.Conv1d):
        return 2 * layer.weight.numel() * batch.tokens
    if type(layer) in KINDS.values():
        raise _not_known(layer)
    return 0


def _position(position: Position, batch: Batch) -> int:
    """What a score scheme multiplies, in each block."""
    queries = batch.tokens * position.heads * position.width
    if isinstance(position, Shaw):
        return 2 * queries * position.keys.num_embeddings
    if isinstance(position, TransformerXL):
        distances = 2 * batch.length - 1
        return 2 * (queries + position.to_r.weight.numel()) * distances
    return 0


def _scores(tokens: nn.Module, count: int) -> int:
    """Scoring every token of the vocabulary."""
    return 2 * count * sum(table.numel() for table in tokens.parameters())


def _not_known(layer: nn.Module) -> ValueError:
    return ValueError(
        f"the cost of a {type(layer).__name__} is not known; count it with torch's FlopCounterMode"
    )
