"""Writing: generates translations, with the scores of their tokens and alternatives."""

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor, nn

from glassformer.config.decoding import DecodeConfig
from glassformer.core.layout import Layout
from glassformer.data.batches import ordered_batches
from glassformer.data.jagged import Jagged, Row
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis, Request, cut_at_stop, decode
from glassformer.decode.beam_steps import BeamBranch, beam_steps
from glassformer.decode.request import resolve_limits
from glassformer.engine import GenerationRequest, SearchRequest, Source
from glassformer.errors import GlassformerError
from glassformer.models.incremental import translating
from glassformer.models.transformer import Transformer
from glassformer.tasks.predictor import Prediction
from glassformer.tasks.shared.batches import text_batch
from glassformer.tasks.shared.generation import GenerationOptions, Spelt, Tokens, spell
from glassformer.tasks.shared.reliability import Reliability
from glassformer.tasks.shared.written import Token, confidence_of, tokens_of
from glassformer.tasks.translate.tokens import PairTokens

ROOMY = 16  # branches per row; with more, a batch has fewer rows
TIMES, MORE = 3, 30  # a translation has at most 3 n + 30 tokens for n source tokens


@dataclass(frozen=True, slots=True)
class Written:
    """One answer: its text, its tokens including the end, and its score."""

    text: str
    tokens: tuple[Token, ...]
    score: float

    @property
    def log_probability(self) -> float:
        """Log-probability of the whole answer, including its end token."""
        return math.fsum(token.log_probability for token in self.tokens)

    @property
    def probability(self) -> float:
        """Joint probability of the whole answer, including its end token."""
        return math.exp(self.log_probability)


@dataclass(frozen=True, slots=True)
class Writer:
    """Generates answers with the configured search.

    Attributes:
        longest: The maximum number of tokens of an answer, without its end.
        words: What every answer must and must not contain.
    """

    pair: PairTokens
    decode: DecodeConfig
    longest: int
    words: Spelt = field(default_factory=Spelt)

    def with_options(self, options: GenerationOptions) -> "Writer":
        """The same writer with these options."""
        words = spell(options, self.pair.target)
        if words.needed > self.longest:
            raise GlassformerError(
                f"the prefix and required words need {words.needed} tokens, but answers have at "
                f"most {self.longest}; require fewer words, or train with a larger task.max_length"
            )
        return replace(self, decode=options.decoding(self.decode), words=words)

    def write_all(self, model: nn.Module, sources: list[Row], budget: int) -> list[list[Written]]:
        """The answers of each row; rows of similar length share a batch.

        Args:
            budget: Tokens per batch, padding included.
        """
        device = next(model.parameters()).device
        found: dict[int, list[Written]] = {}
        branches = self.decode.beam.width if self.decode.method == "beam" else self.decode.best
        budget = budget * ROOMY // max(ROOMY, branches)
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
            limits: The maximum number of tokens of each answer, its end included; by default,
                derived from the length of its source.
        """
        scorer = translating(model, source, reads, first=Tokenizer.start)
        found = decode(scorer, self._request(source, reads, limits), self.decode)
        return [[self.written(one) for one in row] for row in found]

    def engine_request(self, model: Transformer, source: Row) -> GenerationRequest | SearchRequest:
        """What an engine is asked for, to write the same answers to a row as `write`."""
        ids, reads = text_batch(Jagged.of([source]), packed=False)
        device, request = next(model.parameters()).device, self._request(ids, reads, None)
        read = Source(len(source), lambda: model.encode(ids.to(device), reads.to(device)))
        prompt, config = (Tokenizer.start,), self.decode
        if config.method == "beam" or config.best > 1 or request.prefix or request.required:
            return SearchRequest(prompt=prompt, source=read, decode=config, rules=request)
        [limit] = resolve_limits(request, config, 1)
        decode = replace(config, max_length=limit, min_length=min(config.min_length, limit))
        return GenerationRequest(
            prompt=prompt,
            source=read,
            decode=decode,
            end=Tokenizer.end,
            seed=request.seeds[0] if request.seeds else 0,
            forbidden=tuple(map(tuple, request.forbidden)),
            detokenize=self.pair.target.decode,
        )

    def beam_steps(self, model: nn.Module, source: Tensor, reads: Layout) -> list[list[BeamBranch]]:
        """The branches of the search for a single row, step by step; none if it is no beam."""
        if self.decode.method != "beam":
            return []
        scorer = translating(model, source, reads, first=Tokenizer.start)
        return beam_steps(scorer, self._request(source, reads, None), self.decode)

    @property
    def never(self) -> list[int]:
        """Tokens that are never generated: special ones, and tags."""
        tags = range(self.pair.target.size, self.pair.target_size)
        return [Tokenizer.unknown, Tokenizer.mask, Tokenizer.start, *tags]

    def _request(self, source: Tensor, reads: Layout, limits: list[int] | None) -> Request:
        """The constraints on each row."""
        words, rows = self.words, reads.rows
        most = [TIMES * n + MORE + words.needed for n in reads.lengths.tolist()]
        return Request(
            end=Tokenizer.end,
            prefix=[words.prefix] * rows if words.prefix else (),
            limits=limits or [min(self.longest + 1, n) for n in most],
            forbidden=[*([token] for token in self.never), *words.forbidden],
            required=[words.required] * rows if words.required else (),
            openings=[words.openings] * rows if words.required else (),
            continuing=words.continuing,
            separating=words.separating,
            seeds=self._seeds(source, reads) if self.decode.method == "sample" else (),
            detokenize=self.pair.target.decode,
        )

    def _seeds(self, source: Tensor, reads: Layout) -> list[int]:
        """One seed per row, derived from its source, so that other rows do not change it."""
        line = source if reads.is_packed else source[reads.real]  # (N,)
        rows = line.cpu().split(reads.lengths.tolist())
        return [self.decode.sample.seed + zlib.crc32(row.numpy().tobytes()) for row in rows]

    def written(self, found: Hypothesis) -> Written:
        """An answer as text, with its tokens."""
        return Written(self.text(found.tokens), tokens_of(found, self.piece), found.score)

    def text(self, tokens: Tokens) -> str:
        """The text before the first stop text after all required words."""
        text = self.pair.target.decode(list(tokens))
        if not self.decode.stop:
            return text.strip()
        complete = self.words.words.complete_at(tokens) or 0
        required = self.pair.target.decode(list(tokens[:complete]))
        return cut_at_stop(text, self.decode.stop, len(required)).strip()

    def piece(self, number: int) -> str:
        """A token for display; in a joint vocabulary it may be a tag."""
        tokens, tags = self.pair.target, self.pair.tags
        return tokens.pieces([number])[0] if number < tokens.size else tags[number - tokens.size]


def as_prediction(written: Sequence[Written], reliability: Reliability | None = None) -> Prediction:
    """The best answer, with alternatives that differ from it, and the scores of its tokens.

    Args:
        reliability: What validation rows say of such answers.
    """
    best, *rest = written
    others: dict[str, Written] = {}
    for other in rest:
        if other.text != best.text:
            others.setdefault(other.text, other)
    bin_of = None if reliability is None else reliability.of(best.log_probability)
    mean = confidence_of(best.tokens)
    return Prediction(
        best.text,
        mean if bin_of is None else bin_of.share,
        {
            "probability": best.probability,
            "token_mean": mean,
            **({} if bin_of is None else {"validation": bin_of.as_values()}),
            "score": best.score,
            "tokens": [token.as_values() for token in best.tokens],
            "alternatives": [
                {"text": text, "probability": other.probability, "score": other.score}
                for text, other in others.items()
            ],
        },
        evidence="" if bin_of is None else bin_of.sentence(),
    )
