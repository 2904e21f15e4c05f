"""Losses over a vocabulary, and their gradients.

    scores         cross-entropy and divergence of given scores
    chunked        cross-entropy of an output layer, whose scores never exist all at once
    score_kernel   both as GPU kernels, in Triton

The gradient of such a sum is known as soon as the scores are,

    d cross-entropy / d score = softmax(score) - [1 at the label, else 0]

so kernels compute it in the forward pass, while they have the scores at hand.
"""

from glassformer.models.losses.chunked import cross_entropies, summed_cross_entropy
from glassformer.models.losses.scores import IGNORED, cross_entropy, divergence

__all__ = ["IGNORED", "cross_entropies", "cross_entropy", "divergence", "summed_cross_entropy"]
