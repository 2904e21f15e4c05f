"""Continuations of prompts."""

import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Shaped
from torch import nn

from glassformer.config.decoding import DecodeConfig
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.decode import (
    Hypothesis,
    Request,
    Scorer,
    cut_at_stop,
    decode,
    token_by_token,
)
from glassformer.engine import GenerationRequest, borrowed_engine, can_page
from glassformer.errors import GlassformerError
from glassformer.models.incremental import WholeScorer, continuing
from glassformer.models.transformer import LanguageModel
from glassformer.tasks.generate.ngram_baseline import kept_ngrams, next_by_ngrams
from glassformer.tasks.generate.streaming import Streamed
from glassformer.tasks.generate.task import GenerateTask
from glassformer.tasks.generate.unknown import examples, unknown_pieces
from glassformer.tasks.predictor import Partial, Prediction
from glassformer.tasks.served import TokenWriter
from glassformer.tasks.shared.generation import GenerationOptions
from glassformer.tasks.shared.ngram_model import NgramModel
from glassformer.tasks.shared.text import TextPredictor, growing, nothing_known, unseen
from glassformer.tasks.shared.written import (
    confidence_of,
    decode_settings,
    token_lines,
    tokens_of,
)
from glassformer.wording import counted, shortened

TOGETHER = 64  # prompts that are continued at a time
NEVER = (Tokenizer.unknown, Tokenizer.mask, Tokenizer.start)  # generated


class GeneratePredictor(TextPredictor[GenerateTask], TokenWriter):
    """The prompt and how it goes on; on request with what else was likely at each token."""

    blank = None  # an empty prompt starts a new text, an empty cell does not

    def __init__(self, task: GenerateTask) -> None:
        super().__init__(task)
        self.decode: DecodeConfig = task.settings.decode
        self.ngrams: NgramModel | None = None  # writes instead of the model

    def configured(self, **options: Any) -> "GeneratePredictor":
        decode, others = decode_settings(options.get("set", ())), options.get("alternatives")
        if others is not None:
            decode["alternatives"] = others
        return self.with_decoding(decode)

    def baseline(self) -> "GeneratePredictor | None":
        ngrams = kept_ngrams(self.task.folder)
        if ngrams is None:
            return None
        other = copy(self)
        other.ngrams = ngrams
        return other

    def with_decoding(self, settings: Mapping[str, Any]) -> "GeneratePredictor":
        other = copy(self)
        other.decode = GenerationOptions(decode=settings).decoding(self.decode)
        return other

    @property
    def tokenizer(self) -> Tokenizer:
        return self.task.tokenizer

    def predict(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction | Partial]:
        """Continuations; that of a single prompt token by token as they come."""
        rest = iter(inputs)
        first = list(islice(rest, 2))
        by_token = self.decode.best == 1 and self.decode.method != "beam"
        model = model if self.ngrams is None else self.ngrams
        if len(first) == 1 and by_token:
            yield from self._streamed(model, first[0])
        elif by_token and isinstance(model, LanguageModel) and can_page(model.decoder):
            yield from self._at_once(model, chain(first, rest))
        else:
            yield from self._in_batches(model, chain(first, rest))

    def _at_once(self, model: LanguageModel, texts: Iterable[str]) -> Iterator[Prediction]:
        """Predictions by the engine, but for prompts that are too long for its memory."""
        rest, too_long = iter(texts), list[str]()
        while True:
            yield from self._by_engine(model, rest, too_long)
            if not too_long:
                return
            yield from self._in_batches(model, [too_long.pop()])

    def _by_engine(
        self, model: LanguageModel, texts: Iterator[str], too_long: list[str]
    ) -> Iterator[Prediction]:
        """A continuation that ends makes room for the next prompt; ends with one that is too long.

        Args:
            too_long: To which that one is added.
        """
        tokens = TOGETHER * (self.task.settings.max_length + self.decode.max_length)
        open_now: deque[tuple[str, int]] = deque()

        def requests() -> Iterator[GenerationRequest]:
            for text in texts:
                prompt = self._prompt(text)
                if len(prompt) + self.decode.max_length > tokens:
                    too_long.append(text)
                    return
                open_now.append((text, len(prompt)))
                yield self._generation(prompt)

        with borrowed_engine(model, tokens=tokens, rows=TOGETHER) as engine:
            for found in engine.answers(requests(), ahead=TOGETHER):
                yield self._prediction(*open_now.popleft(), [found])

    def _in_batches(self, model: nn.Module, inputs: Iterable[str]) -> Iterator[Prediction]:
        """Predictions for some prompts at a time."""
        for texts in growing(inputs, TOGETHER):
            prompts = [self._prompt(text) for text in texts]
            with torch.no_grad():
                found = decode(self._scorer(model, prompts), self._request(prompts), self.decode)
            for text, ids, answers in zip(texts, prompts, found, strict=True):
                yield self._prediction(text, len(ids), answers)

    def _streamed(self, model: nn.Module, text: str) -> Iterator[Prediction | Partial]:
        """Stream one continuation piece by piece, then its prediction; guesses come whole."""
        if unseen_prompt(self.tokenizer, text, self.tokenizer.encode([text])[0]):
            yield from self._in_batches(model, [text])
            return
        prompt, written = self._prompt(text), self.stream()
        steps = token_by_token(self._scorer(model, [prompt]), self._request([prompt]), self.decode)
        yield Partial(text=text)
        while True:
            try:
                with torch.no_grad():  # not while the caller's code runs
                    piece = written.add(int(next(steps)))
            except StopIteration as end:
                found = self._prediction(text, len(prompt), end.value[0])
                yield Partial(text=found.details["continuation"][written.length :])
                yield found
                return
            if piece:
                yield Partial(text=piece)

    def _prompt(self, text: str) -> list[int]:
        """The tokens that a prompt is read as, refused where not all of them have a position."""
        ids = [Tokenizer.start, *self.task.tokenizer.encode([text])[0].tolist()]
        if self.positions is not None and len(ids) > self.positions:
            raise GlassformerError(
                f"the prompt {shortened(text)} has {len(ids):,} tokens, but the model has "
                f"learned only {self.positions:,} positions; shorten it"
            )
        return ids

    @property
    def positions(self) -> int | None:
        """How many there are if each is learned, which training does in its windows; or None."""
        decoder = self.task.config.model.decoder
        assert decoder is not None
        if self.ngrams is not None or decoder.position.kind != "learned":
            return None
        return self.task.settings.max_length

    def _limit(self, prompt: Sequence[int]) -> int:
        """The most tokens that may follow a prompt; the last one needs no position."""
        most = self.decode.max_length
        return most if self.positions is None else min(most, self.positions - len(prompt) + 1)

    def _scorer(self, model: nn.Module, prompts: Sequence[Sequence[int]]) -> Scorer:
        if isinstance(model, NgramModel):
            return WholeScorer(next_by_ngrams(model), prompts, model.start.device)
        return continuing(model, prompts)

    def _request(self, prompts: Sequence[Sequence[int]]) -> Request:
        return Request(
            end=Tokenizer.end,
            prompts=prompts,
            limits=[self._limit(ids) for ids in prompts],
            forbidden=[[token] for token in NEVER],
            seeds=[self._seed(ids) for ids in prompts],
            detokenize=self.task.tokenizer.decode,
        )

    def request(self, text: str) -> GenerationRequest:
        return self._generation(self._prompt(text))

    def stream(self) -> Streamed:
        return Streamed(self.task.tokenizer, self.decode.stop)

    def continuation(self, text: str, found: Hypothesis) -> Prediction:
        return self._prediction(text, 0, [found])

    def piece(self, token: int) -> str:
        return self.task.tokenizer.pieces([token])[0]

    def _generation(self, prompt: Sequence[int]) -> GenerationRequest:
        """The same for the engine."""
        most = self._limit(prompt)
        shortest = min(most, self.decode.min_length)
        return GenerationRequest(
            prompt=tuple(prompt),
            decode=replace(self.decode, max_length=most, min_length=shortest),
            end=Tokenizer.end,
            seed=self._seed(prompt),
            forbidden=tuple((token,) for token in NEVER),
            detokenize=self.task.tokenizer.decode,
        )

    def _seed(self, prompt: Sequence[int]) -> int:
        """A seed derived from the prompt, so that other prompts do not change it."""
        return self.decode.sample.seed + zlib.crc32(np.array(prompt).tobytes())

    def _prediction(self, text: str, length: int, answers: Sequence[Hypothesis]) -> Prediction:
        """The best continuation, with the others."""
        reason = unseen_prompt(self.tokenizer, text, self.tokenizer.encode([text])[0])
        first, *others = map(self._text, answers)
        tokens = tokens_of(answers[0], self.piece)
        values = [token.as_values() for token in tokens]
        below: list[Any] = [f"  or {text}{other}" for other in others]
        found = Prediction(
            text + first,
            confidence_of(tokens),
            {
                "continuation": first,
                "ended": answers[0].reason,
                "tokens": values,
                "others": others,
            },
            below=below + (token_lines(values) if self.decode.alternatives else []),
            note="; it ".join(self._notes(text, length, answers[0])),
        )
        return replace(found, note="").without_answer(reason) if reason else found

    def _text(self, found: Hypothesis) -> str:
        return cut_at_stop(self.task.tokenizer.decode(list(found.tokens)), self.decode.stop)

    def _notes(self, text: str, length: int, found: Hypothesis) -> Iterator[str]:
        """What a person should know about a prompt or its continuation."""
        if unknown := unknown_pieces(self.task.tokenizer, text):
            yield (
                f"has {counted(len(unknown), 'character')} of {len(text):,} without a token of "
                f"this model: {examples(unknown)}"
            )
        trained = self.task.settings.max_length
        if length > trained:
            yield f"has {length:,} tokens, more than the {trained:,} that were read in training"
        elif self.decode.stop and found.reason == "length":
            yield f"is continued without a stop text, up to {len(found.tokens):,} tokens"


def unseen_prompt(tokenizer: Tokenizer, text: str, ids: Shaped[np.ndarray, " tokens"]) -> str:
    """Why there is no continuation of a prompt; empty unless nothing of it was seen in training.

    A prompt of blanks alone begins a new text.
    """
    return unseen(tokenizer) if text.strip() and nothing_known(tokenizer, ids) else ""
