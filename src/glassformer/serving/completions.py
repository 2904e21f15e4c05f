"""/v1/completions: texts that are continued, whole or as a stream."""

import time
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from glassformer.config.decoding import COLDEST, DecodeConfig
from glassformer.decode.paths import Hypothesis
from glassformer.engine import GenerationRequest
from glassformer.serving.errors import RefusedError, json_response
from glassformer.serving.generation import Generator, Piece, Scored, Writing
from glassformer.serving.metrics import Metrics
from glassformer.serving.models import Models, ServedModel
from glassformer.serving.predictions import as_list
from glassformer.serving.schemas import CompletionRequest
from glassformer.serving.settings import Limits
from glassformer.serving.waiting import EventStream, answered
from glassformer.tasks.served import TokenWriter
from glassformer.wording import counted

PATH = "/v1/completions"
FINISHED = {"end": "stop", "stop": "stop", "length": "length"}
SEEDS = 1 << 40  # larger ones are taken modulo this


def add_completions(app: FastAPI, models: Models, limits: Limits) -> None:
    """The path, if a model continues texts."""
    if not any(one.writes_tokens for one in models):
        return

    @app.post(PATH, summary="Continue texts.", name="completions")
    async def complete(body: CompletionRequest, request: Request) -> Response:
        model = models.find(body.model, PATH)
        prompts = as_list(body.prompt, limits, "prompt")
        completion = Completion(model, body, prompts, limits, models.metrics)
        if body.stream:
            return EventStream(completion.chunks(), limits.seconds, model)
        return json_response(await answered(request, completion.whole(), limits.seconds, model))


@dataclass
class Completion:
    """A request, and its answer in OpenAI's form."""

    model: ServedModel
    body: CompletionRequest
    prompts: list[str]
    limits: Limits
    metrics: Metrics

    def __post_init__(self) -> None:
        body = self.body
        if body.n > self.limits.answers:
            raise RefusedError(
                422, f"n is at most {self.limits.answers}", code="invalid_value", param="n"
            )
        if body.echo and body.logprobs is not None:
            raise RefusedError(
                422,
                "the tokens of prompts have no log-probabilities; leave out echo or logprobs",
                code="invalid_value",
                param="echo",
            )
        longest = max(map(len, stops_of(body)), default=0)
        if longest > self.limits.stop:
            raise RefusedError(
                422,
                f"a stop text has {longest:,} characters, more than {self.limits.stop:,} "
                f"(limits.stop of the server); shorten it",
                code="invalid_value",
                param="stop",
            )
        self.id, self.created = f"cmpl-{uuid.uuid4().hex}", int(time.time())
        self.prompt_tokens = self.written_tokens = 0
        self.offsets = [len(text) if body.echo else 0 for text in self.prompts for _ in self.each]

    @property
    def each(self) -> range:
        """The continuations of each prompt."""
        return range(self.body.n)

    @property
    def generator(self) -> Generator:
        assert self.model.generator is not None
        return self.model.generator

    @cached_property
    def writer(self) -> TokenWriter:
        """The model's, with the settings of the request."""
        assert isinstance(self.model.predictor, TokenWriter)
        own = self.model.predictor
        return own.with_decoding(decoding(self.body, own.decode))

    def requests(self) -> Sequence[GenerationRequest]:
        """What the engine is asked for; called by the worker, since it takes tokenizing."""
        found = []
        for text in self.prompts:
            request = self.writer.request(text)
            self.prompt_tokens += len(request.prompt)
            request = self._within_limits(request)
            found += [replace(request, seed=request.seed + number) for number in self.each]
        return found

    def _within_limits(self, request: GenerationRequest) -> GenerationRequest:
        """Refuse too many tokens; a length that nobody asked for becomes what is left."""
        most = min(self.limits.tokens, self.generator.tokens)
        room = most - len(request.prompt)
        if room >= request.decode.max_length:
            return request
        if self.body.max_tokens is None and room > 0:
            return replace(request, decode=replace(request.decode, max_length=room, min_length=0))
        setting = "limits.tokens" if most == self.limits.tokens else "engine.tokens"
        raise RefusedError(
            422,
            f"the prompt has {counted(len(request.prompt), 'token')}, and with max_tokens more "
            f"than {most:,} ({setting} of the server); shorten it, or lower max_tokens",
            code="too_many_tokens",
            param="prompt",
        )

    async def pieces(self, *, stream: bool) -> AsyncIterator[Piece]:
        """What the engine writes."""
        texts = len(self.prompts) * self.body.n
        streams = [self.writer.stream() for _ in range(texts)] if stream else ()
        try:
            async for piece in self.generator.write(Writing(self.requests, streams)):
                if piece.found is not None:
                    self.written_tokens += len(piece.found.token_scores)
                yield piece
        finally:
            by_kind = {"prompt": self.prompt_tokens, "completion": self.written_tokens}
            for kind, tokens in by_kind.items():
                self.metrics.tokens.labels(self.model.name, kind).inc(tokens)

    async def whole(self) -> dict[str, Any]:
        """The answer, once all texts are complete."""
        choices: dict[int, dict[str, Any]] = {}
        async for piece in self.pieces(stream=False):
            assert piece.found is not None
            text, tokens = self._text(piece), scored(piece.found)
            choices[piece.number] = self._choice(piece, self._echo(piece.number) + text, tokens)
        return self._values([choices[n] for n in sorted(choices)], usage=self._usage())

    async def chunks(self) -> AsyncIterator[dict[str, Any]]:
        """The same as it is written."""
        shown: dict[int, tuple[int, int]] = {}  # characters and tokens of each text
        async for piece in self.pieces(stream=True):
            n, text, tokens = piece.number, piece.text, piece.tokens
            characters, count = shown.get(n, (0, 0))
            if piece.found is not None:  # what was held back, but not the token for the end
                text = self._text(piece)[characters:]
                tokens = tuple(scored(piece.found)[count:])
            echo = "" if n in shown else self._echo(n)
            shown[n] = characters + len(text), count + len(tokens)
            yield self._values([self._choice(piece, echo + text, tokens)])
        if self.body.stream_options is not None and self.body.stream_options.include_usage:
            yield self._values([], usage=self._usage())

    def _echo(self, number: int) -> str:
        return self.prompts[number // self.body.n] if self.body.echo else ""

    def _text(self, piece: Piece) -> str:
        """The whole continuation."""
        assert piece.found is not None
        found = self.writer.continuation("", piece.found)
        text: str = found.details["continuation"]
        return text

    def _choice(self, piece: Piece, text: str, tokens: Sequence[Scored]) -> dict[str, Any]:
        reason = None if piece.found is None else FINISHED[piece.found.reason]
        return {
            "index": piece.number,
            "text": text,
            "logprobs": self._logprobs(piece.number, tokens),
            "finish_reason": reason,
        }

    def _logprobs(self, number: int, tokens: Sequence[Scored]) -> dict[str, Any] | None:
        if self.body.logprobs is None:
            return None
        names, offsets = [self.writer.piece(one.token) for one in tokens], []
        for name in names:
            offsets.append(self.offsets[number])
            self.offsets[number] += len(name)
        return {
            "tokens": names,
            "token_logprobs": [one.score for one in tokens],
            "top_logprobs": [
                {self.writer.piece(token): score for token, score in one.alternatives}
                for one in tokens
            ],
            "text_offset": offsets,
        }

    def _values(
        self, choices: list[dict[str, Any]], *, usage: dict[str, int] | None = None
    ) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model.name,
            "choices": choices,
            **({} if usage is None else {"usage": usage}),
        }

    def _usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.written_tokens,
            "total_tokens": self.prompt_tokens + self.written_tokens,
        }


def scored(found: Hypothesis) -> list[Scored]:
    """The tokens of an answer, its end left out."""
    lines = zip(found.tokens, found.token_scores, found.alternatives, strict=False)
    return [Scored(*line) for line in lines]


def stops_of(body: CompletionRequest) -> list[str]:
    """The stop texts of a request."""
    return [body.stop] if isinstance(body.stop, str) else body.stop or []


def decoding(body: CompletionRequest, default: DecodeConfig) -> dict[str, Any]:
    """The decoding settings of a request, nested; language models do not search in the engine."""
    method = "greedy" if default.method == "beam" else default.method
    values: dict[str, Any] = {"alternatives": body.logprobs or 0, "best": 1, "method": method}
    if body.max_tokens is not None:
        values |= {"max_length": body.max_tokens, "min_length": 0}
    if body.stop is not None:
        values["stop"] = stops_of(body)
    names = ("temperature", "top_p", "top_k", "min_p")
    filters = {name: value for name in names if (value := getattr(body, name)) is not None}
    if body.temperature is not None and body.temperature < COLDEST:
        return values | {"method": "greedy"}
    if body.seed is not None:
        filters["seed"] = body.seed % SEEDS
    if filters or body.n > 1:
        return values | {"method": "sample", "sample": filters}
    return values
