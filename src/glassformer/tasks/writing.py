"""Writing: from what a translator reads to texts, with their scores and what else it might say."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from glassformer.config.decoding import DecodeConfig
from glassformer.core.layout import Layout
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import Hypothesis, Request, decode
from glassformer.models.stepping import translating
from glassformer.tasks.job import Prediction
from glassformer.tasks.pair_tokens import PairTokens

TIMES, MORE = 3, 30  # a translation has at most so many times the tokens of its source, and more


@dataclass(frozen=True, slots=True)
class Written:
    """One answer: its text, the tokens it is made of, and the model's view of each."""

    text: str
    pieces: tuple[str, ...]
    hypothesis: Hypothesis

    @property
    def confidence(self) -> float:
        """The geometric mean of the tokens' probabilities."""
        scores = self.hypothesis.token_scores
        return math.exp(sum(scores) / max(1, len(scores)))


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes answers by the search that is asked for."""

    pair: PairTokens
    decode: DecodeConfig
    longest: int

    @torch.no_grad()
    def write(self, model: nn.Module, source: Tensor, reads: Layout) -> list[list[Written]]:
        """The answers of each row, best first."""
        scorer = translating(model, source, reads, first=Tokenizer.start)  # type: ignore[arg-type]
        limits = [min(self.longest, TIMES * n + MORE) for n in reads.lengths.tolist()]
        # Specials and tags are never written.
        forbidden = [[n] for n in (Tokenizer.unknown, Tokenizer.mask, Tokenizer.start)]
        forbidden += [[n] for n in range(self.pair.target.size, self.pair.target_size)]
        request = Request(
            end=Tokenizer.end, limits=limits, forbidden=forbidden, text=self.pair.target.decode
        )
        found = decode(scorer, request, self.decode)
        return [[self._written(one) for one in row] for row in found]

    def _written(self, found: Hypothesis) -> Written:
        tokens = list(found.tokens)
        pieces = tuple(self.pair.target.pieces(tokens))
        return Written(self.pair.target.decode(tokens), pieces, found)


def as_prediction(written: list[Written]) -> Prediction:
    """The best answer, with the others and the scores of its tokens."""
    best = written[0]
    return Prediction(
        best.text,
        best.confidence,
        {
            "score": best.hypothesis.score,
            "tokens": [
                {"piece": piece, "log_probability": score}
                for piece, score in zip(
                    (*best.pieces, "<end>"), best.hypothesis.token_scores, strict=False
                )
            ],
            "alternatives": [
                {"text": other.text, "score": other.hypothesis.score} for other in written[1:]
            ],
        },
    )
