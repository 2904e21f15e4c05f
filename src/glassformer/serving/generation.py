"""Generation: everything that is written token by token, through the engine.

Requests join and leave at every step; one that is cancelled is gone before the next.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial

from glassformer.decode.paths import Hypothesis
from glassformer.engine import Engine, GenerationRequest, Progress, SearchRequest
from glassformer.engine.generation import Alternatives
from glassformer.models.transcriber import Transcriber
from glassformer.models.transformer import LanguageModel, Transformer
from glassformer.serving.settings import EngineMemory
from glassformer.serving.threads import Threads
from glassformer.serving.worker import Source, Worker
from glassformer.tasks.served import TextStream

PAGE = 16  # tokens


@dataclass(frozen=True, slots=True)
class Scored:
    """A token, its log-probability, and the likeliest ones."""

    token: int
    score: float
    alternatives: Alternatives


@dataclass(frozen=True, slots=True)
class Piece:
    """What was added to one of the texts of a request.

    Attributes:
        number: Of the text in its request.
        text: What can be shown of it.
        tokens: Those that were chosen since the last piece.
        found: The whole answer, if it is complete.
        others: The next best answers of a search.
    """

    number: int
    text: str = ""
    tokens: tuple[Scored, ...] = ()
    found: Hypothesis | None = None
    others: tuple[Hypothesis, ...] = ()


@dataclass(eq=False)
class Writing:
    """A request whose texts are being written.

    Attributes:
        prepare: The requests to the engine, one for each text; called by the worker.
        streams: How each text is shown while it is written; none if only whole ones are wanted.
        pieces: How many texts there are, then what is written of them.
    """

    prepare: Callable[[], Sequence[GenerationRequest | SearchRequest]]
    streams: Sequence[TextStream] = ()
    numbers: dict[int, int] = field(default_factory=dict)  # in the engine, to those of the texts
    pending: dict[int, list[Scored]] = field(default_factory=dict)  # not shown yet, by text
    pieces: "asyncio.Queue[int | Piece | Exception]" = field(default_factory=asyncio.Queue)
    cancelled: bool = False


class Generator(Source):
    """Writes the texts of many requests, a token of each in every step.

    Args:
        inference: The context in which the model is called.
        threads: How many compute a step.

    Attributes:
        tokens: The most of one text, with what it continues.
    """

    def __init__(
        self,
        worker: Worker,
        model: LanguageModel | Transformer | Transcriber,
        memory: EngineMemory,
        inference: Callable[[], AbstractContextManager[object]],
        threads: Threads,
    ) -> None:
        self.worker, self.inference, self.threads = worker, inference, threads
        self.tokens = memory.tokens
        pages = -(-memory.tokens // PAGE)
        with inference():
            self.engine = Engine(model, pages=pages, page_size=PAGE, rows=memory.rows)
        self.open: dict[int, Writing] = {}  # by number in the engine

    async def write(self, writing: Writing) -> AsyncIterator[Piece]:
        """Pieces of the texts of a request as they are written, until all are complete."""
        self.worker.post(self, partial(self._submit, writing))
        texts: int | None = None
        try:
            while texts != 0:
                piece = await writing.pieces.get()
                if isinstance(piece, Exception):
                    raise piece
                if isinstance(piece, int):
                    texts = piece
                    continue
                assert texts is not None
                texts -= piece.found is not None
                yield piece
        finally:
            if texts != 0:
                writing.cancelled = True
                self.worker.post(self, partial(self._cancel, writing))

    def step(self) -> float | None:
        """Choose a token of each text."""
        if not self.open:
            return None
        self.threads.choose(self.engine.due_tokens)
        with self.inference():
            progress = self.engine.step()
        for one in progress:
            self._added(one)
        return 0.0 if self.open else None

    def fail(self, error: Exception) -> None:
        for writing in {*self.open.values()}:
            self._cancel(writing)
            self._tell(writing, error)

    def _submit(self, writing: Writing) -> None:
        if writing.cancelled:
            return
        try:
            requests = writing.prepare()
            self._tell(writing, len(requests))
            for number, request in enumerate(requests):
                in_engine = self.engine.submit(request, writing)
                writing.numbers[in_engine] = number
                self.open[in_engine] = writing
        except Exception as error:
            self._cancel(writing)
            self._tell(writing, error)

    def _cancel(self, writing: Writing) -> None:
        for in_engine in writing.numbers:
            if self.open.pop(in_engine, None) is not None:
                self.engine.cancel(in_engine)

    def _added(self, progress: Progress) -> None:
        """Tell a request about a token, as far as it wants to know."""
        writing = self.open[progress.number]
        number = writing.numbers[progress.number]
        if progress.finished:
            del self.open[progress.number]
            if progress.answer is None:
                assert progress.error is not None
                self._tell(writing, progress.error)
                return
        if not writing.streams:
            if progress.finished:
                found, others = progress.answer, progress.others
                self._tell(writing, Piece(number, found=found, others=others))
            return
        tokens = writing.pending.setdefault(number, [])
        tokens.append(Scored(progress.token, progress.score, progress.alternatives))
        text = writing.streams[number].add(progress.token)
        if text or progress.finished:
            self._tell(writing, Piece(number, text, tuple(tokens), progress.answer))
            tokens.clear()

    def _tell(self, writing: Writing, piece: int | Piece | Exception) -> None:
        self.worker.deliver(partial(writing.pieces.put_nowait, piece))
