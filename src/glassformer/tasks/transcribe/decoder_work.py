"""What `Searcher.write` does, by an engine: for searches in which a decoder writes."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch

from glassformer.core.caches import Memory
from glassformer.data.audio.extractor import Features
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis
from glassformer.decode.request import resolve_limits
from glassformer.engine import GenerationRequest, SearchRequest, Source
from glassformer.models.transcriber import Transcriber
from glassformer.tasks.shared.sound import padded_features, vectors_of
from glassformer.tasks.transcribe.choices import Written
from glassformer.tasks.transcribe.listened import EncodedSounds
from glassformer.tasks.transcribe.searching import NEVER, Heard, Searcher


class DecoderWork:
    """The pieces of a recording, each of which an engine writes down.

    Args:
        times: Whether to find out when each word is spoken.
    """

    def __init__(
        self, searcher: Searcher, model: Transcriber, sounds: Sequence[Features], *, times: bool
    ) -> None:
        self.searcher, self.model, self.sounds, self.times = searcher, model, sounds, times
        self.vectors = [vectors_of(len(sound), searcher.factor) for sound in sounds]
        self.heard: dict[int, Heard] = {}  # by piece

    def requests(self) -> list[GenerationRequest | SearchRequest]:
        """What the engine is asked for, piece by piece."""
        return [self._request(number) for number in range(len(self.sounds))]

    def written(self, found: Sequence[Sequence[Hypothesis]]) -> list[Written]:
        """The texts of the pieces."""
        return [self._written(number, answers) for number, answers in enumerate(found)]

    def _request(self, number: int) -> GenerationRequest | SearchRequest:
        source = Source(self.vectors[number], partial(self._encode, number))
        rules, config = self.searcher.decoding([self.vectors[number]])
        prompt, seed = (Tokenizer.start,), config.sample.seed + number
        if config.method == "beam" or config.best > 1 or rules.fusion is not None:
            return SearchRequest(
                prompt=prompt,
                source=source,
                decode=config,
                rules=replace(rules, seeds=[seed]),
                fewer=lambda: self.heard[number].limits[0] + 1,
            )
        [limit] = resolve_limits(rules, config, 1)
        return GenerationRequest(
            prompt=prompt,
            source=source,
            decode=replace(config, max_length=limit, min_length=min(config.min_length, limit)),
            end=Tokenizer.end,
            seed=seed,
            forbidden=tuple((token,) for token in NEVER),
            detokenize=self.searcher.tokenizer.decode,
        )

    @torch.no_grad()
    def _encode(self, number: int) -> Sequence[Memory]:
        features, layout = padded_features([self.sounds[number]])
        device, vectors = self.model.to_token.weight.device, [self.vectors[number]]
        sounds = EncodedSounds(self.model, features.to(device), layout.to(device), vectors)
        self.heard[number] = self.searcher.heard(sounds, vectors)
        return sounds.memory()

    def _written(self, number: int, found: Sequence[Hypothesis]) -> Written:
        [written] = self.searcher.written(self.heard[number], [found], times=self.times)
        return written
