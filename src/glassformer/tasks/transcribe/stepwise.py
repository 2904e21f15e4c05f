"""What `Searcher.write` does, by an engine: for a search by attention that is no beam."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.core.caches import Memory
from glassformer.data.audio.extractor import Features
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.engine import GenerationRequest, Source
from glassformer.models.transcriber import Transcriber
from glassformer.tasks.shared.sound import padded_features, vectors_of
from glassformer.tasks.transcribe.searching import NEVER, Searcher, Written
from glassformer.tasks.transcribe.sounds import writable


class StepwiseWork:
    """The pieces of a recording, each of which an engine writes down.

    Args:
        times: Whether to find out when each word is spoken.
    """

    def __init__(
        self, searcher: Searcher, model: Transcriber, sounds: Sequence[Features], *, times: bool
    ) -> None:
        self.searcher, self.model, self.sounds, self.times = searcher, model, sounds, times
        self.vectors = [vectors_of(len(sound), searcher.factor) for sound in sounds]
        self.frames: dict[int, Float[Tensor, "1 S V"]] = {}  # what CTC says, by piece

    def requests(self) -> list[GenerationRequest]:
        """What the engine is asked for, piece by piece."""
        return [self._request(number) for number in range(len(self.sounds))]

    def written(self, found: Sequence[Hypothesis]) -> list[Written]:
        """The texts of the pieces."""
        return [self._written(number, one) for number, one in enumerate(found)]

    def _request(self, number: int) -> GenerationRequest:
        decode, vectors = self.searcher.decode, self.vectors[number]
        limit = max(1, min(decode.max_length, vectors + 1))
        return GenerationRequest(
            prompt=(Tokenizer.start,),
            source=Source(vectors, partial(self._encode, number)),
            decode=replace(decode, max_length=limit, min_length=min(decode.min_length, limit)),
            end=Tokenizer.end,
            seed=decode.sample.seed + number,
            forbidden=tuple((token,) for token in NEVER),
            detokenize=self.searcher.tokenizer.decode,
        )

    @torch.no_grad()
    def _encode(self, number: int) -> Sequence[Memory]:
        features, layout = padded_features([self.sounds[number]])
        device, vectors = self.model.to_token.weight.device, self.vectors[number]
        heard = self.model.listen(features.to(device), layout.to(device), vectors=vectors)
        if self.times:
            scores = self.model.to_token(heard.vectors).float()
            self.frames[number] = writable(scores.log_softmax(-1))
        return self.model.keep(heard)

    def _written(self, number: int, found: Hypothesis) -> Written:
        text, tokens = self.searcher.text(found.tokens), found.tokens
        written = Written(text=text, tokens=tokens, score=found.log_probability)
        if not self.times:
            return written
        [words] = self.searcher.timed(self.frames[number], [self.vectors[number]], [tokens])
        return replace(written, words=words)
