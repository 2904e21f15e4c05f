"""Searching: from what a model scores to the texts of a batch, and when their words are spoken.

    ctc         the likeliest path of every frame, or a prefix beam
    attention   token by token, greedily or by beam search
    joint       the beams of both, each text scored by both: w CTC + (1 - w) attention

All rows of a batch are searched together, and every sound is encoded once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from glassformer.config.decoding import DecodeConfig
from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Request, decode
from glassformer.decode.ctc import CtcHypothesis, ctc_align, ctc_greedy, ctc_prefix_beam, ctc_scores
from glassformer.models.incremental import attending
from glassformer.models.transcriber import Heard, Transcriber
from glassformer.tasks.transcribe.sounds import (
    BLANK,
    Features as Sound,
    padded_features,
    vectors_of,
)
from glassformer.tasks.transcribe.transcripts import words_of

Tokens = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Timed:
    """A word, and the vectors during which it is spoken."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """One text of a recording.

    Attributes:
        score: The log-probability by which it was chosen.
        words: When each word is spoken, if requested and known.
    """

    text: str
    tokens: Tokens
    score: float
    words: tuple[Timed, ...] = ()

    @property
    def confidence(self) -> float:
        """The geometric mean of the probabilities of its tokens and its end."""
        return math.exp(min(0.0, self.score) / (len(self.tokens) + 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Searcher:
    """Writes down what a batch of recordings says.

    Attributes:
        search: ctc, attention or joint.
        weight: The share of CTC in a joint search.
        factor: Frames that become one vector.
    """

    tokenizer: Tokenizer
    search: str
    decode: DecodeConfig
    weight: float
    factor: int

    @torch.no_grad()
    def write(
        self, model: Transcriber, sounds: Sequence[Sound], *, times: bool = False
    ) -> list[Written]:
        """The best text of each recording.

        Args:
            times: Whether to find out when each word is spoken.
        """
        features, layout = padded_features(sounds)
        device = model.to_token.weight.device
        vectors = [vectors_of(len(sound), self.factor) for sound in sounds]
        return self.search_batch(
            model, features.to(device), layout.to(device), vectors, times=times
        )

    @torch.no_grad()
    def search_batch(
        self,
        model: Transcriber,
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
        heard = model.listen(features, layout, vectors=sum(vectors))
        frames = model.to_token(heard.vectors).float().log_softmax(-1)
        limits = list(limits) or list(vectors)
        if self.search == "ctc":
            best = self._by_ctc(frames, vectors)
        elif self.search == "attention":
            best = [(row[0][0], row[0][1]) for row in self._by_attention(model, heard, limits)]
        else:
            best = self._jointly(model, heard, frames, vectors, limits)
        words = self.timed(frames, vectors, [tokens for tokens, _ in best]) if times else None
        return [
            Written(
                text=self.tokenizer.decode(list(tokens)).strip(),
                tokens=tokens,
                score=score,
                words=() if words is None else words[row],
            )
            for row, (tokens, score) in enumerate(best)
        ]

    def _by_ctc(
        self, frames: Float[Tensor, "B S V"], vectors: Sequence[int]
    ) -> list[tuple[Tokens, float]]:
        if self.decode.method == "greedy":
            paths = ctc_greedy(frames, vectors, blank=BLANK)
            return [(path.tokens, path.log_probability) for path in paths]
        beams = self._prefixes(frames, vectors)
        return [(beam[0].tokens, beam[0].log_probability) for beam in beams]

    def _prefixes(
        self, frames: Float[Tensor, "B S V"], vectors: Sequence[int]
    ) -> list[list[CtcHypothesis]]:
        width = self.decode.beam.width
        return ctc_prefix_beam(frames, vectors, blank=BLANK, width=width)

    def _by_attention(
        self, model: Transcriber, heard: Heard, limits: Sequence[int]
    ) -> list[list[tuple[Tokens, float]]]:
        """The texts of each row, best first, with their log-probabilities."""
        scorer = attending(model, model.keep(heard), heard.layout, first=Tokenizer.start)
        never = (Tokenizer.unknown, Tokenizer.mask, Tokenizer.start)
        request = Request(
            end=Tokenizer.end,
            limits=[limit + 1 for limit in limits],
            forbidden=[[token] for token in never],
        )
        found = decode(scorer, request, self.decode)
        return [[(one.tokens, one.log_probability) for one in row] for row in found]

    def _jointly(
        self,
        model: Transcriber,
        heard: Heard,
        frames: Float[Tensor, "B S V"],
        vectors: Sequence[int],
        limits: Sequence[int],
    ) -> list[tuple[Tokens, float]]:
        """The text with the best sum of both scores, among those that either search finds."""
        written = self._by_attention(model, heard, limits)
        texts = [
            list(dict.fromkeys([*(one.tokens for one in prefixes), *(one[0] for one in row)]))
            for prefixes, row in zip(self._prefixes(frames, vectors), written, strict=True)
        ]
        by_ctc = ctc_scores(frames, vectors, texts, blank=BLANK)
        by_attention = attention_scores(model, heard, texts)
        best = []
        for row, first, second in zip(texts, by_ctc, by_attention, strict=True):
            totals = [
                self.weight * ctc + (1 - self.weight) * attention
                for ctc, attention in zip(first, second, strict=True)
            ]
            at = max(range(len(row)), key=totals.__getitem__)
            best.append((row[at], totals[at]))
        return best

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


def attention_scores(
    model: Transcriber, heard: Heard, texts: Sequence[Sequence[Tokens]]
) -> list[list[float]]:
    """The log-probability of every text of every row, and of its end, by the decoder."""
    device = heard.vectors.device
    rows = [row for row, some in enumerate(texts) for _ in some]
    flat = [text for some in texts for text in some]
    at = torch.tensor(rows, device=device)
    source = Layout.padded(heard.layout.lengths[at], longest=heard.layout.longest, device=device)
    memory = model.keep(Heard(heard.vectors[at], source))
    target = Layout.padded([len(text) + 1 for text in flat], device=device)
    tokens = torch.full((len(flat), target.longest + 1), Tokenizer.end)
    tokens[:, 0] = Tokenizer.start
    for number, text in enumerate(flat):
        tokens[number, 1 : len(text) + 1] = torch.tensor(text, dtype=torch.long)
    tokens = tokens.to(device)
    scores = model.decode(tokens[:, :-1], target, memory).float().log_softmax(-1)
    each = scores.gather(2, tokens[:, 1:, None])[:, :, 0]
    found = iter(each.masked_fill(~target.real, 0.0).sum(1).tolist())
    return [[next(found) for _ in some] for some in texts]
