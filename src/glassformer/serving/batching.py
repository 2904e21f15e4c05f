"""Batching: requests that come within moments of each other are answered as one batch.

While a batch is computed, the next one gathers by itself. It is due once there are as many requests
as were there when the last one ended, since their clients are likely to send more, but no later
than `batching.wait` after the first of them. So where requests come one by one, none waits.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar

from glassformer.decode.cancelling import SearchCancelledError, cancelled_when
from glassformer.errors import GlassformerError
from glassformer.serving.settings import Batching
from glassformer.serving.worker import Source, Worker, settle

log = logging.getLogger(__name__)
Answer = TypeVar("Answer")
Options = tuple[tuple[str, Hashable], ...]


@dataclass(eq=False, slots=True)
class Waiting:
    """A request that waits for its answers.

    Attributes:
        options: Requests share a batch only if they are the same.
        check: Refuses inputs that are too long; called by the worker, since it may take a while.
        cancelled: Whether nobody waits any more.
    """

    inputs: list[Any]
    options: Options
    check: Callable[[Sequence[Any]], None]
    future: "asyncio.Future[Any]"
    arrived: float = field(default_factory=time.monotonic)
    cancelled: bool = False


class Batcher(Source, Generic[Answer]):
    """Answers requests in batches, one at a time.

    Requests gather on the event loop; the worker is woken for a batch, not for each of them.

    Args:
        answer: The answers to a list of inputs with some options, in order.
        observe: Told the number of inputs of every batch.
        is_brief: Whether inputs are answered so soon that the event loop may do it.

    Attributes:
        running: The batch that the worker answers.
        expected: Requests that were there when the last batch ended, and so likely the next time.
        later: When to look again whether a batch is due, if nothing comes before.
    """

    def __init__(
        self,
        worker: Worker,
        answer: Callable[[list[Any], dict[str, Any]], Sequence[Answer]],
        batching: Batching,
        observe: Callable[[int], object] = bool,
        is_brief: Callable[[list[Any]], bool] = lambda inputs: False,
    ) -> None:
        self.worker, self.answer, self.batching, self.observe = worker, answer, batching, observe
        self.is_brief = is_brief
        self.waiting: deque[Waiting] = deque()
        self.running: list[Waiting] = []
        self.expected = 1
        self.later: asyncio.TimerHandle | None = None

    async def answers(
        self, inputs: list[Any], options: Options, check: Callable[[Sequence[Any]], None]
    ) -> list[Answer]:
        """The answers to the inputs of one request."""
        loop = asyncio.get_running_loop()
        request = Waiting(inputs, options, check, loop.create_future())
        self.waiting.append(request)
        loop.call_soon(self._look)  # once those that came with it are here
        try:
            found: list[Answer] = await request.future
            return found
        finally:
            request.cancelled = True  # without effect once it was answered

    def _look(self) -> None:
        """Have the worker answer a batch, if one is due."""
        if self.running:
            return
        while self.waiting and self.waiting[0].cancelled:
            self.waiting.popleft()
        if not self.waiting:
            return
        early = self.waiting[0].arrived + self.batching.wait - time.monotonic()
        inputs = sum(len(one.inputs) for one in self.waiting)
        if self.later is not None:
            self.later.cancel()
        if len(self.waiting) < self.expected and inputs < self.batching.most and early > 0:
            self.later = asyncio.get_running_loop().call_later(early, self._look)
            return
        self.running = self._next_batch()
        brief = not self.waiting and self.is_brief(inputs_of(self.running))
        (self.worker.post_brief if brief else self.worker.post)(self, self._work)

    def _next_batch(self) -> list[Waiting]:
        """The first request, and those with the same options that fit beside it."""
        batch, room, others = list[Waiting](), self.batching.most, deque[Waiting]()
        options = self.waiting[0].options
        for one in self.waiting:
            if one.cancelled:
                continue
            if one.options == options and (not batch or len(one.inputs) <= room):
                batch.append(one)
                room -= len(one.inputs)
            else:
                others.append(one)
        self.waiting = others
        return batch

    def _work(self) -> None:
        """Answer the batch; called by the worker."""
        self._answer([one for one in self.running if self._is_accepted(one)])
        self.worker.deliver(self._end)

    def _end(self) -> None:
        """Go on with those that have come meanwhile."""
        self.expected = len(self.running) + len(self.waiting)
        self.running = []
        self._look()

    def step(self) -> None:
        """A batch is a single call, so that no steps are left."""

    def fail(self, error: Exception) -> None:
        for one in self.running:
            self._tell(one, error)
        self.worker.deliver(self._end)

    def _is_accepted(self, request: Waiting) -> bool:
        """Whether it waits, and its inputs are as they should be; if not, it is told so."""
        if request.cancelled:
            return False
        try:
            request.check(request.inputs)
        except Exception as error:
            self._tell(request, error)
            return False
        return True

    def _answer(self, batch: list[Waiting]) -> None:
        """Answer these together; if something is wrong with one of them, each by itself."""
        if not batch:
            return
        inputs = inputs_of(batch)
        self.observe(len(inputs))
        try:
            with cancelled_when(lambda: all(one.cancelled for one in batch)):
                found = list(self.answer(inputs, dict(batch[0].options)))
        except SearchCancelledError:
            return
        except Exception as error:
            if len(batch) > 1:
                for one in batch:
                    self._answer([one])
                return
            if not isinstance(error, GlassformerError):
                log.error("a request failed", exc_info=error)
            self._tell(batch[0], error)
            return
        for one in batch:
            self._tell(one, found[: len(one.inputs)])
            del found[: len(one.inputs)]

    def _tell(self, request: Waiting, found: object) -> None:
        self.worker.deliver(partial(settle, request.future, found))


def inputs_of(batch: Sequence[Waiting]) -> list[Any]:
    """The inputs of all its requests."""
    return [given for one in batch for given in one.inputs]
