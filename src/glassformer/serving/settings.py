"""Settings of a server."""

from dataclasses import dataclass, field, fields

from glassformer.config.checks import above_zero, not_negative, positive


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much a server accepts, and the status of a request beyond it.

    Args:
        body: Bytes of a JSON body (413).
        upload: Bytes of a body with a recording or an image (413).
        headers: Bytes of the headers of a request, and of all that comes beside its body (431).
        inputs: Inputs of one request (422).
        tokens: Tokens of one input, its answer included where it is written after it (422).
        answers: Answers to one input; also the highest value of a whole-number option (422).
        audio: Seconds of a recording (422).
        pixels: Pixels of an image (422).
        explained, explained_audio: Tokens of a text, and seconds of a recording, of which a
            prediction is explained (422).
        stop: Characters of a stop text (422).
        concurrency: Open requests of one client (429).
        queue: Open requests of all clients (503).
        connections: Open connections of all clients (503).
        seconds: Until a request is answered (504).
        patience: Seconds until a request has arrived (408), and until a client has read what was
            written to it.
    """

    body: int = 1 << 20
    upload: int = 32 << 20
    headers: int = 32 << 10
    inputs: int = 256
    tokens: int = 4096
    answers: int = 16
    audio: float = 600.0
    pixels: int = 1 << 24
    explained: int = 512
    explained_audio: float = 30.0
    stop: int = 256
    concurrency: int = 128
    queue: int = 512
    connections: int = 768
    seconds: float = 120.0
    patience: float = 30.0

    def __post_init__(self) -> None:
        for one in fields(self):
            above_zero(f"limits.{one.name}", getattr(self, one.name))


@dataclass(frozen=True, kw_only=True, slots=True)
class Batching:
    """How requests become batches.

    Args:
        wait: Seconds that a request waits for others to join it, at most; none if the last one
            was alone.
        most: Inputs in a batch, unless a single request has more.
    """

    wait: float = 0.002
    most: int = 64

    def __post_init__(self) -> None:
        not_negative("batching.wait", self.wait)
        positive("batching.most", self.most)


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineMemory:
    """How much is written at a time.

    Args:
        rows: Texts that are written at a time.
        tokens: Tokens that the caches of one model hold; at least those of one request.
    """

    rows: int = 64
    tokens: int = 1 << 15

    def __post_init__(self) -> None:
        positive("engine.rows", self.rows)
        positive("engine.tokens", self.tokens)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServeConfig:
    """All settings of a server."""

    limits: Limits = field(default_factory=Limits)
    batching: Batching = field(default_factory=Batching)
    engine: EngineMemory = field(default_factory=EngineMemory)
