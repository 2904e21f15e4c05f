"""Requests for one text each, and how far they have come."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from math import isnan

from glassformer.config.decoding import DecodeConfig
from glassformer.core.caches import Memory
from glassformer.decode.no_answer import no_answer
from glassformer.decode.paths import Hypothesis, Reason
from glassformer.decode.rules import Rule
from glassformer.decode.stopping import Stops
from glassformer.errors import GlassformerError

Alternatives = tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Source:
    """A source that is encoded when its turn comes, so that only what is worked on takes memory.

    Attributes:
        length: How many vectors the encoder makes of it, at most.
        encode: Returns what each block of the decoder attends to, for this one row.
    """

    length: int
    encode: Callable[[], Sequence[Memory]]


@dataclass(frozen=True, kw_only=True, slots=True)
class GenerationRequest:
    """What is to be continued, and how.

    Attributes:
        prompt: At least one token; for an encoder-decoder, its start.
        source: What the decoder attends to; None for a language model.
        decode: Greedy or sampling, one answer; several answers are several requests.
        end: The token that ends the answer; -1 for none.
        seed: Sampling depends on it and on the number of the token, on nothing else.
        forbidden: Words (tokens) that the answer must not contain.
        detokenize: From tokens to text, to find stop texts.
    """

    prompt: tuple[int, ...]
    source: Source | None = None
    decode: DecodeConfig = field(default_factory=DecodeConfig)
    end: int = -1
    seed: int = 0
    forbidden: tuple[tuple[int, ...], ...] = ()
    detokenize: Callable[[Sequence[int]], str] | None = None

    def __post_init__(self) -> None:
        if not self.prompt:
            raise GlassformerError("the prompt is empty; give at least one token to continue from")
        if self.decode.method == "beam" or self.decode.best > 1:
            raise GlassformerError(
                "the engine writes one answer to a request, token by token; "
                "set decode.method to greedy or sample, and decode.best to 1"
            )
        if self.decode.stop and self.detokenize is None:
            raise ValueError("stop texts need `detokenize`, from tokens to text; pass one")


@dataclass(frozen=True, eq=False)
class Settings:
    """How a token is chosen; one object for all requests that choose alike.

    Attributes:
        decode: Of one of them; lengths, stop texts and the seed may differ.
        steady: The rules that do the same at every step.
        by_history: Whether others depend on the tokens before, beyond their number.
    """

    decode: DecodeConfig
    steady: tuple[Rule, ...]
    by_history: bool

    @property
    def plain(self) -> bool:
        """Whether the likeliest token is taken, and nothing else is asked of its step."""
        greedy = self.decode.method == "greedy" and not self.decode.alternatives
        return greedy and not self.by_history


@dataclass(kw_only=True, eq=False, slots=True)
class Branch:
    """A sequence that the decoder reads and continues.

    Attributes:
        number: Its name in the engine.
        limit: The most tokens to generate.
        origin: What the decoder attends to; None for a language model.
        sequence, source: The numbers of its pages in the pools; -1 where it has none.
        read: How many tokens the decoder has read.
        chosen: How many tokens were chosen, even if only the device knows the last of them.
        tokens: The prompt and what was generated, as far as it is known.
        cancelled: Whether nobody waits for it any more.
        others: Branches that go on from the same prompt, and take memory together with it.
        owner: Who shares the rows with others, such as a client's request.
    """

    number: int
    prompt: tuple[int, ...]
    limit: int
    origin: Source | None = None
    sequence: int = -1
    source: int = -1
    read: int = 0
    chosen: int = 0
    tokens: list[int] = field(default_factory=list)
    cancelled: bool = False
    others: "Sequence[Branch]" = ()
    owner: Hashable = None

    @property
    def rows(self) -> int:
        """How many rows it takes, its other branches included."""
        return 1 + len(self.others)

    @property
    def generated(self) -> list[int]:
        """The tokens after the prompt."""
        return self.tokens[len(self.prompt) :]

    @property
    def unread(self) -> int:
        """How many tokens the model has yet to read before it can score the next."""
        return len(self.prompt) + self.chosen - self.read

    @property
    def source_length(self) -> int:
        """How many vectors its source has, at most."""
        return 0 if self.origin is None else self.origin.length

    @property
    def most_tokens(self) -> int:
        """The most tokens that the pool will have to hold; the last one is never read."""
        return len(self.prompt) + self.limit - 1


@dataclass(kw_only=True, eq=False, slots=True)
class Generation(Branch):
    """A request that the engine works on.

    Attributes:
        settings: How a token is chosen.
        scores, alternatives: For each generated token: the model's log-probability, and the
            likeliest tokens.
        reason: Why it ended; None while it goes on, or without an answer.
        error: Why it has none.
    """

    request: GenerationRequest
    settings: Settings
    scores: list[float] = field(default_factory=list)
    alternatives: list[Alternatives] = field(default_factory=list)
    reason: Reason | None = None
    error: GlassformerError | None = None

    @property
    def finished(self) -> bool:
        """Whether nothing more will be added."""
        return self.error is not None or self.cancelled or self.reason is not None

    def add(self, token: int, score: float, alternatives: Alternatives) -> None:
        """Add a token; -1 if none was left to choose."""
        if token < 0 or isnan(score):
            self.error = no_answer(is_nan=isnan(score))
            return
        self.tokens.append(token)
        self.scores.append(score)
        self.alternatives.append(alternatives)
        if token == self.request.end:
            self.reason = "end"
        elif self.request.decode.stop and self._stopped():
            self.reason = "stop"
        elif len(self.scores) == self.limit:
            self.reason = "length"

    def answer(self) -> Hypothesis | None:
        """The finished answer; None without one."""
        if self.reason is None:
            return None
        total = sum(self.scores)
        return Hypothesis(
            tokens=tuple(self.generated[: len(self.scores) - (self.reason == "end")]),
            score=total / len(self.scores),
            log_probability=total,
            token_scores=tuple(self.scores),
            alternatives=tuple(self.alternatives),
            reason=self.reason,
        )

    def _stopped(self) -> bool:
        request = self.request
        assert request.detokenize is not None  # checked with the request
        stops = Stops(request.decode.stop, request.detokenize)
        begin = max(len(self.prompt), len(self.tokens) - stops.window)
        return stops.reached(self.tokens[begin:])
