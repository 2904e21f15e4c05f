"""The attention of one reading: what every layer and head looked at when an input was read."""

from math import prod

import torch

from glassformer.explaining.parts import AttentionMap
from glassformer.explaining.subject import Subject
from glassformer.explaining.watching import watching

MOST_WEIGHTS = 2**26  # of all layers together: 256 MiB


@torch.no_grad()
def attention_of(subject: Subject) -> tuple[tuple[AttentionMap, ...], int]:
    """The weights of the layers, and how many of the first ones were left out for their size."""
    if subject.by_ngrams_alone:
        return (), 0
    with watching(subject.model) as (watched, maps):
        subject.scores(watched)
        room, left_out = MOST_WEIGHTS, 0
        for name in reversed(list(maps)):
            size = prod(maps.shape(name)[1:])
            if size > room:
                del maps.recordings[name]
                left_out += 1
            else:
                room -= size
        return subject.attention_of(maps), left_out
