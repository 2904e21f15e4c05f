"""Writing: from what a translator reads to texts, with their scores and what else it might say."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.config.decoding import DecodeConfig
from glassformer.core.layout import Layout
from glassformer.data.batches import ordered_batches
from glassformer.data.jagged import Jagged, Row
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis, Request, cut_at_stop, decode
from glassformer.errors import GlassformerError
from glassformer.models.incremental import translating
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.shared.generation import GenerationOptions, Spelt, Tokens, spell
from glassformer.tasks.shared.text import text_batch
from glassformer.tasks.translate.tokens import PairTokens

ROOMY = 16  # ways followed a row, beyond which fewer rows are written together
TIMES, MORE = 3, 30  # a translation has at most so many times the tokens of its source, and more


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer, the model's log-probability of it, and what it would say instead."""

    id: int
    piece: str
    log_probability: float
    instead: tuple["Token", ...] = ()

    def as_values(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        values = {"id": self.id, "piece": self.piece, "log_probability": self.log_probability}
        return values | ({"instead": [t.as_values() for t in self.instead]} if self.instead else {})


@dataclass(frozen=True, slots=True)
class Written:
    """One answer: its text, the tokens it is made of, the end among them, and its score."""

    text: str
    tokens: tuple[Token, ...]
    score: float

    @property
    def confidence(self) -> float:
        """The geometric mean of the tokens' probabilities."""
        scores = [token.log_probability for token in self.tokens]
        return math.exp(sum(scores) / max(1, len(scores)))


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes answers by the search that is asked for.

    Attributes:
        longest: Tokens of an answer at most; its end comes behind them.
        words: What every answer must and must not say.
    """

    pair: PairTokens
    decode: DecodeConfig
    longest: int
    words: Spelt = field(default_factory=Spelt)

    def with_options(self, options: GenerationOptions) -> "Writer":
        """The same writer with other options than the usual ones."""
        words = spell(options, self.pair.target)
        if words.needed > self.longest:
            raise GlassformerError(
                f"the prefix and required words have {words.needed} tokens, but answers have at "
                f"most {self.longest}; ask for fewer, or train with a larger task.max_length"
            )
        return replace(self, decode=options.decoding(self.decode), words=words)

    def write_all(self, model: nn.Module, sources: list[Row], budget: int) -> list[list[Written]]:
        """The answers of each row; rows of about one length are written together.

        Args:
            budget: Tokens of a batch, padding counted.
        """
        device = next(model.parameters()).device
        found: dict[int, list[Written]] = {}
        ways = self.decode.beam.width if self.decode.method == "beam" else self.decode.best
        budget = budget * ROOMY // max(ROOMY, ways)
        for rows in ordered_batches(np.array(list(map(len, sources))), budget, padded=True):
            chosen = Jagged.of([sources[row] for row in rows.tolist()])
            ids, reads = text_batch(chosen, packed=False)
            found |= zip(
                rows.tolist(), self.write(model, ids.to(device), reads.to(device)), strict=True
            )
        return [found[row] for row in range(len(sources))]

    @torch.no_grad()
    def write(
        self, model: nn.Module, source: Tensor, reads: Layout, limits: list[int] | None = None
    ) -> list[list[Written]]:
        """The answers of each row, best first.

        Args:
            limits: Tokens of each answer at most, the end counted; by default, by its source.
        """
        scorer = translating(model, source, reads, first=Tokenizer.start)  # type: ignore[arg-type]
        found = decode(scorer, self._request(source, reads, limits), self.decode)
        return [[self._written(one) for one in row] for row in found]

    def _request(self, source: Tensor, reads: Layout, limits: list[int] | None) -> Request:
        """What is asked of each row."""
        # Specials and tags are never written.
        forbidden = [[n] for n in (Tokenizer.unknown, Tokenizer.mask, Tokenizer.start)]
        forbidden += [[n] for n in range(self.pair.target.size, self.pair.target_size)]
        words, rows = self.words, reads.rows
        most = [TIMES * n + MORE + words.needed for n in reads.lengths.tolist()]
        return Request(
            end=Tokenizer.end,
            prefix=[words.prefix] * rows if words.prefix else (),
            limits=limits or [min(self.longest + 1, n) for n in most],
            forbidden=[*forbidden, *words.forbidden],
            required=[words.required] * rows if words.required else (),
            openings=[words.openings] * rows if words.required else (),
            continuing=words.continuing,
            separating=words.separating,
            seeds=self._seeds(source, reads) if self.decode.method == "sample" else (),
            detokenize=self.pair.target.decode,
        )

    def _seeds(self, source: Tensor, reads: Layout) -> list[int]:
        """A seed a row that follows from what it reads, so that neighbours do not change it."""
        line = source if reads.is_packed else source[reads.real]  # (N,)
        rows = line.cpu().split(reads.lengths.tolist())
        return [self.decode.sample.seed + zlib.crc32(row.numpy().tobytes()) for row in rows]

    def _written(self, found: Hypothesis) -> Written:
        ids = [*found.tokens, Tokenizer.end][: len(found.token_scores)]
        tokens = tuple(
            replace(self._token(number, score), instead=tuple(self._token(*one) for one in others))
            for number, score, others in zip(
                ids, found.token_scores, found.alternatives, strict=True
            )
        )
        return Written(self._text(found.tokens), tokens, found.score)

    def _text(self, tokens: Tokens) -> str:
        """What they say before a text to stop at, which counts behind all required words."""
        text = self.pair.target.decode(list(tokens))
        if not self.decode.stop:
            return text.strip()
        complete = self.words.words.complete_at(tokens) or 0
        required = self.pair.target.decode(list(tokens[:complete]))
        return cut_at_stop(text, self.decode.stop, len(required)).strip()

    def _token(self, number: int, score: float) -> Token:
        """A token as it is shown; in a joint vocabulary it may be a tag."""
        tokens, tags = self.pair.target, self.pair.tags
        shown = tokens.pieces([number])[0] if number < tokens.size else tags[number - tokens.size]
        return Token(number, shown, score)


def as_prediction(written: Sequence[Written]) -> Prediction:
    """The best answer, with others that say something else, and the scores of its tokens."""
    best, *rest = written
    others: dict[str, Written] = {}
    for other in rest:
        if other.text != best.text:
            others.setdefault(other.text, other)
    return Prediction(
        best.text,
        best.confidence,
        {
            "score": best.score,
            "tokens": [token.as_values() for token in best.tokens],
            "alternatives": [
                {"text": text, "confidence": other.confidence, "score": other.score}
                for text, other in others.items()
            ],
        },
    )
