"""Occlusion: what changes if a piece is left out. Zeiler and Fergus, 2014.

    influence of a piece = log-odds of all pieces - log-odds without it

A span of words is left out at once where one word repeats another: a word's influence is then its
mean share of the spans that hold it.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.explaining.methods.method import Influence
from glassformer.explaining.subject import Subject

SPAN = 3  # pieces
TOGETHER = 64  # variants of the input between two signs of progress


def occlusion(subject: Subject) -> Influence:
    """The influence of each piece, left out alone."""
    return left_out(subject, 1)


def occlusion_of_spans(subject: Subject) -> Influence:
    """The influence of each piece, left out with those beside it."""
    return left_out(subject, SPAN)


def left_out(subject: Subject, span: int) -> Influence:
    """What is lost without each run of so many pieces, shared among them."""
    pieces = len(subject.pieces)
    places = torch.arange(pieces)
    firsts = torch.arange(1 - span, pieces)[:, None]  # the first and last runs are shorter
    held = (places >= firsts) & (places < firsts + span)  # (runs, pieces)
    whole = torch.ones(1, pieces, dtype=torch.bool)
    scores = some_at_a_time(subject, torch.cat([whole, ~held]))
    lost = scores[0] - scores[1:]  # (runs, targets)
    if subject.readable is not None:
        held = held & subject.readable.cpu()[:, None]  # (targets, runs, pieces)
    share = (held / held.sum(-1, keepdim=True).clamp(min=1)).to(lost)
    return (lost.mT[:, None] @ share).squeeze(1) / span  # (targets, pieces)


def some_at_a_time(
    subject: Subject, kept: Bool[Tensor, "variants pieces"]
) -> Float[Tensor, "variants targets"]:
    """The scores of all variants, which may take long."""
    scores, done = [], 0
    for some in kept.split(TOGETHER):
        scores.append(subject.scores_of(some))
        done += len(some)
        subject.progress(done, len(kept))
    return torch.cat(scores)
