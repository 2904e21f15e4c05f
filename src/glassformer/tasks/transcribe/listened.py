"""A batch of recordings that a model has listened to: what a search needs of the model.

A Transcriber encodes every recording once. A model of any other class is called as one, and reads
the recordings again for every token that is written.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from glassformer.config import require
from glassformer.core.caches import Memory
from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Scorer
from glassformer.models.incremental import WholeScorer, attending
from glassformer.models.incremental.prompt import chosen_rows, in_rows, rows_of
from glassformer.models.incremental.whole import last_scores
from glassformer.models.transcriber import Scored, Transcriber
from glassformer.tasks.shared.own_models import given
from glassformer.tasks.transcribe.settings import StreamConfig

Sounds = Float[Tensor, "B frames M"]


class Listened(ABC):
    """What a model makes of a batch of recordings.

    Attributes:
        frames: Scores of the tokens at every vector, for CTC.
    """

    frames: Float[Tensor, "B S V"]

    @abstractmethod
    def scorer(self) -> Scorer:
        """Steps of the decoder."""

    @abstractmethod
    def decode(
        self, tokens: Int[Tensor, "M T"], layout: Layout, rows: Int[Tensor, " M"]
    ) -> Float[Tensor, "M T V"]:
        """Scores of each next token of texts, each of one row of the batch."""


class EncodedSounds(Listened):
    """Recordings that a Transcriber has encoded."""

    def __init__(
        self, model: Transcriber, features: Sounds, layout: Layout, vectors: Sequence[int]
    ) -> None:
        self.model, self.heard = model, model.listen(features, layout, vectors=sum(vectors))
        self.frames = model.to_token(self.heard.vectors)

    def memory(self) -> Sequence[Memory]:
        """What each block of the decoder attends to."""
        return self.model.keep(self.heard)

    def scorer(self) -> Scorer:
        return attending(self.model, self.memory(), self.heard.layout, first=Tokenizer.start)

    def decode(
        self, tokens: Int[Tensor, "M T"], layout: Layout, rows: Int[Tensor, " M"]
    ) -> Float[Tensor, "M T V"]:
        memory = [chosen_rows(in_rows(one), rows) for one in self.memory()]
        return self.model.decode(tokens, layout, memory)


class ReadSounds(Listened):
    """Recordings that a model of one's own reads as often as it is asked."""

    def __init__(self, model: nn.Module, features: Sounds, layout: Layout) -> None:
        self.model, self.features, self.layout = model, features, layout
        self.frames = scored_by(model, features, None, source=layout, target=None).frames

    def scorer(self) -> Scorer:
        def score(tokens: Tensor, layout: Layout, rows: Tensor) -> Tensor:
            return last_scores(self.decode(tokens, layout, rows), layout)

        return WholeScorer(score, [[Tokenizer.start]] * self.layout.rows, self.layout.device)

    def decode(
        self, tokens: Int[Tensor, "M T"], layout: Layout, rows: Int[Tensor, " M"]
    ) -> Float[Tensor, "M T V"]:
        source = rows_of(self.layout, rows)
        found = scored_by(self.model, self.features[rows], tokens, source=source, target=layout)
        if found.written is None:
            raise TypeError("forward returns no scores of next tokens, which attention needs")
        return found.written


def listened(
    model: nn.Module, features: Sounds, layout: Layout, vectors: Sequence[int]
) -> Listened:
    """A batch as a model reads it.

    Args:
        vectors: How many vectors a frontend makes of each recording.
    """
    if isinstance(model, Transcriber):
        return EncodedSounds(model, features, layout, vectors)
    return ReadSounds(model, features, layout)


def refuse_chunks(stream: StreamConfig) -> None:
    """A model of one's own cannot be trained to read chunk by chunk."""
    require(
        not stream.chunk,
        "task.stream.chunk needs a Transcriber, whose encoder reads chunk by chunk; leave it out, "
        "or give a Transcriber",
    )


def scored_by(
    model: nn.Module,
    features: Sounds,
    tokens: Int[Tensor, "B T"] | None,
    *,
    source: Layout,
    target: Layout | None,
    **others: object,
) -> Scored:
    """What a model of one's own says: the scores of frames, or a pair with those of tokens."""
    arguments = given(tokens=tokens, target=target, **others)
    found = model(features, source=source, **arguments)
    return Scored(found) if isinstance(found, torch.Tensor) else Scored(*found)
