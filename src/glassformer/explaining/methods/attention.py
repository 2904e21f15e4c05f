"""Attention: how much was read of each vector, and how much the score depends on that.

    attention              the weights as they are, averaged over layers and heads
    attention x gradient   Σ A · ∂score/∂A over heads and queries, averaged over layers

Where a decoder attends to a source, its cross-attention counts; otherwise self-attention does. The
weights as they are have no sign, and differ between targets only if these are read off different
positions.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.core.kinds.linformer import Linformer
from glassformer.errors import GlassformerError
from glassformer.explaining.methods.method import Influence
from glassformer.explaining.subject import Subject
from glassformer.explaining.watching import attention_layers, cross_attentions, watching
from glassformer.models.pooling import AttentionPool


def attention(subject: Subject) -> Influence:
    """The mean weight of each vector for those that a target is read off."""
    names = layers_that_read(subject)
    with torch.no_grad(), watching(subject.model, layers=names) as (watched, maps):
        subject.scores(watched)
        each = [
            torch.stack([own[name].mean(1) for name in own]).mean(0) for own in maps.by_member()
        ]
    return subject.by_piece(read_off(subject, each))


def attention_x_gradient(subject: Subject) -> Influence:
    """What each vector's weights contribute to the score, to first order: the mean of layers."""
    names = layers_that_read(subject)
    watched_model = watching(subject.model, layers=names, gradients=True)
    with torch.enable_grad(), watched_model as (watched, maps):
        scores = subject.scores(watched)[0]
        found = [
            torch.stack([(maps[name].detach() * by).sum((1, 2)) for name, by in found.items()])
            for found in map(maps.gradients, scores)
        ]
    return subject.by_piece(torch.stack(found).mean(1))  # (targets, rows, S)


def read_off(
    subject: Subject, weights: Sequence[Float[Tensor, "rows Q S"]]
) -> Float[Tensor, "targets rows S"]:
    """The weights of the vectors that each target is read off, averaged over members."""
    assert subject.readers is not None
    return torch.einsum("mnrq,mrqs->nrs", subject.readers, torch.stack([*weights])) / len(weights)


def layers_that_read(subject: Subject) -> list[str]:
    """The layers that attend to what the pieces are of; refused if there are none."""
    names = reading_layers(subject.model)
    if not names or subject.readers is None:
        raise GlassformerError(
            "this model has no attention weights to explain by; choose integrated_gradients or "
            "occlusion"
        )
    return names


def reading_layers(model: nn.Module) -> list[str]:
    """The layers of a model that attend to its inputs, if their weights tell which."""
    found = attention_layers(model)
    if any(isinstance(layer, Linformer) for layer in found.values()):
        return []  # its keys are sums of many inputs
    left_out = pools(model)
    return cross_attentions(model) or [name for name in found if name not in left_out]


def pools(model: nn.Module) -> list[str]:
    """The names of attention pools, whose weights the readers hold."""
    return [
        name for name, layer in attention_layers(model).items() if isinstance(layer, AttentionPool)
    ]
