"""Searching: from what a model scores to the texts of a batch, and when their words are spoken.

    ctc         the likeliest path of every frame, or a prefix beam
    attention   token by token, greedily or by beam search
    joint       the beams of both, each text scored by both: w CTC + (1 - w) attention

Beams may be fused with a language model, whose weighted log-probability is added to that sum. All
rows of a batch are searched together, and every sound is encoded once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from glassformer.config.decoding import DecodeConfig
from glassformer.core.layout import Layout
from glassformer.data.audio.extractor import Features as Sound
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Fusion, Hypothesis, Request, decode
from glassformer.decode.ctc import ctc_align, ctc_greedy, ctc_prefix_beam, ctc_scores
from glassformer.decode.penalties import PENALTIES
from glassformer.tasks.shared.sound import padded_features, vectors_of
from glassformer.tasks.transcribe.choices import Choice, Timed, Written
from glassformer.tasks.transcribe.listened import Listened, listened
from glassformer.tasks.transcribe.rescoring import Tokens, attention_scores
from glassformer.tasks.transcribe.sounds import BLANK, writable
from glassformer.tasks.transcribe.transcripts import words_of

NEVER = (Tokenizer.unknown, Tokenizer.mask, Tokenizer.start)  # written


@dataclass(frozen=True, eq=False, slots=True)
class Heard:
    """What is known of a batch of recordings before a decoder writes.

    Attributes:
        frames: The log-probabilities of tokens at every vector.
        vectors: How many vectors each recording has.
        limits: The most tokens of each text.
        prefixes: The texts that CTC finds, for a joint search.
    """

    sounds: Listened
    frames: Float[Tensor, "B S V"]
    vectors: Sequence[int]
    limits: Sequence[int]
    prefixes: list[list[Choice]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Searcher:
    """Writes down what a batch of recordings says.

    Attributes:
        search: ctc, attention or joint.
        weight: The share of CTC in a joint search.
        factor: Frames that become one vector.
        fusion: The language model of beam searches, if there is one.
    """

    tokenizer: Tokenizer
    search: str
    decode: DecodeConfig
    weight: float
    factor: int
    fusion: Fusion | None = None

    @torch.no_grad()
    def write(
        self, model: nn.Module, sounds: Sequence[Sound], *, times: bool = False
    ) -> list[Written]:
        """The best text of each recording.

        Args:
            times: Whether to find out when each word is spoken.
        """
        features, layout = padded_features(sounds)
        device = next(model.parameters()).device
        vectors = [vectors_of(len(sound), self.factor) for sound in sounds]
        return self.search_batch(
            model, features.to(device), layout.to(device), vectors, times=times
        )

    @torch.no_grad()
    def search_batch(
        self,
        model: nn.Module,
        features: Float[Tensor, "B frames M"],
        layout: Layout,
        vectors: Sequence[int],
        *,
        limits: Sequence[int] = (),
        times: bool = False,
    ) -> list[Written]:
        """The best text of each row of a batch.

        Args:
            vectors: How many vectors the frontend makes of each row.
            limits: The most tokens of each text; by default as many as there are vectors.
        """
        heard = self.heard(listened(model, features, layout, vectors), vectors, limits)
        decoded = list[list[Hypothesis]]()
        if self.search != "ctc":
            decoded = decode(heard.sounds.scorer(), *self.decoding(heard.limits))
        return self.written(heard, decoded, times=times)

    def heard(
        self, sounds: Listened, vectors: Sequence[int], limits: Sequence[int] = ()
    ) -> "Heard":
        """What can be known of recordings before a decoder writes."""
        frames = writable(sounds.frames.float().log_softmax(-1))
        limits, prefixes = list(limits) or list(vectors), list[list[Choice]]()
        if self.search == "joint":
            prefixes = self._prefixes(frames, vectors)
            longest = [max(len(one.tokens) for one in row) for row in prefixes]
            limits = list(map(min, limits, map(room_beside, longest)))
        return Heard(sounds, frames, vectors, limits, prefixes)

    @torch.no_grad()
    def written(
        self, heard: "Heard", decoded: Sequence[Sequence[Hypothesis]], *, times: bool = False
    ) -> list[Written]:
        """The best text of each recording, given what a decoder has written."""
        frames, vectors = heard.frames, heard.vectors
        if self.search == "ctc":
            choices = self._by_ctc(frames, vectors)
        elif self.search == "attention":
            choices = self._by_attention(decoded)
        else:
            choices = self._jointly(heard, decoded)
        if self.fusion is not None:
            choices = with_language(choices, self.fusion, frames.device)
        weight = 0.0 if self.fusion is None else self.fusion.weight
        best = [max(row, key=lambda one: one.total(self.share, weight)) for row in choices]
        words = self.timed(frames, vectors, [one.tokens for one in best]) if times else None
        return [
            Written(
                text=self.text(one.tokens),
                tokens=one.tokens,
                score=one.score(self.share),
                words=() if words is None else words[row],
                choices=tuple(choices[row]),
            )
            for row, one in enumerate(best)
        ]

    def text(self, tokens: Tokens) -> str:
        """Tokens as text."""
        return " ".join(self.tokenizer.decode(list(tokens)).split())

    @property
    def share(self) -> float:
        """Of CTC in the score of a text."""
        return {"ctc": 1.0, "attention": 0.0}.get(self.search, self.weight)

    def _by_ctc(self, frames: Float[Tensor, "B S V"], vectors: Sequence[int]) -> list[list[Choice]]:
        if self.decode.method == "greedy":
            paths = ctc_greedy(frames, vectors, blank=BLANK)
            return [[Choice(tokens=path.tokens, ctc=path.log_probability)] for path in paths]
        return self._prefixes(frames, vectors)

    def _prefixes(
        self, frames: Float[Tensor, "B S V"], vectors: Sequence[int]
    ) -> list[list[Choice]]:
        width = self.decode.beam.width
        found = ctc_prefix_beam(frames, vectors, blank=BLANK, width=width, fusion=self.fusion)
        return [[Choice(tokens=x.tokens, ctc=x.log_probability) for x in row] for row in found]

    def _by_attention(self, decoded: Sequence[Sequence[Hypothesis]]) -> list[list[Choice]]:
        beam = self.decode.beam
        penalty = PENALTIES[beam.penalty]
        return [
            [
                Choice(
                    tokens=one.tokens,
                    attention=one.log_probability,
                    divisor=float(penalty(torch.tensor(len(one.token_scores)), beam.strength)),
                )
                for one in row
            ]
            for row in decoded
        ]

    def decoding(self, limits: Sequence[int]) -> tuple[Request, DecodeConfig]:
        """What a decoder is asked for."""
        request = Request(
            end=Tokenizer.end,
            limits=[limit + 1 for limit in limits],
            forbidden=[[token] for token in NEVER],
            fusion=self.fusion,
        )
        config = self.decode
        if self.fusion is not None:
            config = replace(config, best=config.beam.width)
        return request, config

    def _jointly(
        self, heard: "Heard", decoded: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Choice]]:
        """The texts that either search finds, and the decoder ends, with the scores of both."""
        attended = [
            {one.tokens: one.log_probability for one in row if one.reason == "end"}
            for row in decoded
        ]
        others = [
            [one.tokens for one in row if one.tokens not in known]
            for row, known in zip(heard.prefixes, attended, strict=True)
        ]
        for row, texts, scores in zip(
            attended, others, attention_scores(heard.sounds, others), strict=True
        ):
            row.update(zip(texts, scores, strict=True))
        compared = [list(row) for row in attended]
        by_ctc = ctc_scores(heard.frames, heard.vectors, compared, blank=BLANK)
        return [
            [
                Choice(tokens=tokens, ctc=ctc, attention=attention)
                for (tokens, attention), ctc in zip(row.items(), scores, strict=True)
            ]
            for row, scores in zip(attended, by_ctc, strict=True)
        ]

    def timed(
        self, frames: Float[Tensor, "B S V"], vectors: Sequence[int], texts: Sequence[Tokens]
    ) -> list[tuple[Timed, ...]]:
        """When each word of each text is spoken; nothing for a text that does not fit its sound."""
        found = []
        for tokens, spans in zip(
            texts, ctc_align(frames, vectors, texts, blank=BLANK), strict=True
        ):
            words = words_of(self.tokenizer, tokens) if spans is not None else []
            found.append(
                tuple(
                    Timed(
                        text=word.text,
                        start=spans[word.tokens[0]].start,
                        end=spans[word.tokens[-1]].end,
                    )
                    for word in words
                    if spans is not None
                )
            )
        return found


def room_beside(tokens: int) -> int:
    """How long a text may be that CTC writes with so many tokens: longer ones have no chance."""
    return tokens + tokens // 2 + 8


def with_language(
    choices: Sequence[Sequence[Choice]], fusion: Fusion, device: torch.device
) -> list[list[Choice]]:
    """The texts with their log-probabilities by a language model."""
    flat = [one.tokens for row in choices for one in row]
    scores = iter(fusion.log_probabilities(flat, device))
    return [[replace(one, language=next(scores)) for one in row] for row in choices]
