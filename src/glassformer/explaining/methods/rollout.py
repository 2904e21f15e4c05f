"""Attention rollout: the weights of all layers, multiplied. Abnar and Zuidema, 2020.

    shares = Π (A + 1) / 2, A the mean of the heads of a layer

Half of each vector comes from the residual connection, so it is its own. What is left of a source
in a decoder is half of what it attends to at each layer. Shares have no sign.
"""

from collections.abc import Collection

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from glassformer.explaining.methods.attention import layers_that_read, pools, read_off
from glassformer.explaining.methods.method import Influence
from glassformer.explaining.subject import Subject
from glassformer.explaining.watching import Maps, cross_attentions, watching

Shares = Float[Tensor, "rows Q inputs"]


def rollout(subject: Subject) -> Influence:
    """The share of each vector in those that a target is read off."""
    layers_that_read(subject)
    with torch.no_grad(), watching(subject.model) as (watched, maps):
        subject.scores(watched)
        across, others = cross_attentions(subject.model), pools(subject.model)
        each = [rolled_out(layers, across, others) for layers in maps.by_member()]
    inputs = subject.piece_of.shape[1]
    return subject.by_piece(read_off(subject, [shares[..., -inputs:] for shares in each]))


def rolled_out(maps: Maps, across: Collection[str], others: Collection[str] = ()) -> Shares:
    """The share of each input in each vector of the last layer; those of a vector sum to one.

    The inputs of a decoder are its own tokens and then those of the encoder.

    Args:
        across: The layers that attend to the encoder.
        others: Layers to leave out.
    """
    stack, inputs, shares = "", None, None
    for name in maps:
        if name in others:
            continue
        weights = maps[name].mean(1)  # (rows, T, S)
        if name.partition(".")[0] != stack:
            stack, inputs, shares = name.partition(".")[0], shares, None
        own = weights.shape[1]
        shares = identity(weights, own) if shares is None else shares
        if name in across:
            inputs = identity(weights, weights.shape[2]) if inputs is None else inputs
            source = F.pad(weights @ inputs, (own, 0))
            shares = (F.pad(shares, (0, source.shape[2] - shares.shape[2])) + source) / 2
        else:
            mixed = weights + identity(weights, own)
            shares = mixed / mixed.sum(-1, keepdim=True) @ shares
    assert shares is not None
    return shares


def identity(like: Shares, size: int) -> Float[Tensor, "rows own own"]:
    """Each vector its own, for every row."""
    return torch.eye(size, dtype=like.dtype, device=like.device).expand(len(like), -1, -1)
