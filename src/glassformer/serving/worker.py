"""The worker: the one thread that calls models, a step at a time.

A source of work (a batcher, an engine) is active from the first request it gets until nothing is
left to do. Active sources take turns, a step each, so that long work of one model does not hold
up another, and what was posted meanwhile, such as a cancellation, is done before the next step.

Waking a thread, and being woken by it, takes about a tenth of a millisecond. What takes hardly
longer is done by the event loop itself, if the worker has nothing to do.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread

log = logging.getLogger(__name__)
Call = Callable[[], object]
TURNS = 3  # of the event loop, in which bytes that have arrived become requests


class Source(ABC):
    """Something that has work for the worker."""

    @abstractmethod
    def step(self) -> float | None:
        """Do one step; returns in how many seconds the next is due, None for nothing to do."""

    @abstractmethod
    def fail(self, error: Exception) -> None:
        """Give up all that is under way, since a step failed."""


class Worker:
    """Runs what is posted, and the steps of active sources, in its thread.

    Models that are served are never called by two threads at a time: the event loop calls one only
    while all that was posted is done. (A run in training answers its few rows in another thread,
    with a model of its own, since that would hold up others.) One thread writes each of the counts.
    """

    def __init__(self) -> None:
        self._posted: SimpleQueue[tuple[Source | None, Call]] = SimpleQueue()
        self._active: dict[Source, None] = {}
        self._outbox: list[Call] = []
        self._sent = self._done = 0  # posted by the event loop; finished by the worker
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False
        self._thread = Thread(target=self._run, name="models", daemon=True)

    def start(self) -> None:
        """Begin to work, for the event loop that is running."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def stop(self, timeout: float) -> None:
        """End after the step that is under way."""
        self._posted.put((None, self._stop))
        if self._thread.is_alive():
            self._thread.join(timeout)

    @property
    def is_idle(self) -> bool:
        """Whether all that was posted is done."""
        return self._sent == self._done

    def post(self, source: Source, call: Call) -> None:
        """Have the worker call this before its next step, and go on with the source."""
        self._sent += 1
        self._posted.put((source, call))

    def post_brief(self, source: Source, call: Call) -> None:
        """The same for a call without further steps that may be done here, by the event loop.

        What is delivered waits until requests that came meanwhile are read, so that they count.
        """
        if self._loop is None or not self.is_idle:
            self.post(source, call)
            return
        self._do(source, call)
        self._step(source)
        calls, self._outbox = self._outbox, []
        run_after(TURNS, self._loop, calls)

    def deliver(self, call: Call) -> None:
        """From the worker: have the event loop call this, after the step."""
        self._outbox.append(call)

    def _stop(self) -> None:
        self._stopped = True

    def _run(self) -> None:
        wait, received = None, 0
        while not self._stopped:
            received += self._receive(wait)
            due = [self._step(source) for source in list(self._active)]
            wait = min((seconds for seconds in due if seconds is not None), default=None)
            self._flush()
            if not self._active:
                self._done = received

    def _receive(self, wait: float | None) -> int:
        """Do what was posted; wait for it if nothing is due. Returns how much it was."""
        received = 0
        try:
            posted = self._posted.get(block=wait is None or wait > 0, timeout=wait)
            while True:
                received += 1
                self._do(*posted)
                posted = self._posted.get_nowait()
        except Empty:
            return received

    def _do(self, source: Source | None, call: Call) -> None:
        if source is None:
            call()
            return
        self._active[source] = None
        try:
            call()
        except Exception as error:
            self._failed(source, error)

    def _step(self, source: Source) -> float | None:
        """A step of a source, which outlives whatever goes wrong in it."""
        try:
            due = source.step()
        except Exception as error:
            self._failed(source, error)
            return 0.0  # others may wait
        if due is None:
            del self._active[source]
        return due

    def _failed(self, source: Source, error: Exception) -> None:
        log.error("a step of a model failed", exc_info=error)
        source.fail(error)

    def _flush(self) -> None:
        calls, self._outbox = self._outbox, []
        if calls and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(run_all, calls)


def run_all(calls: list[Call]) -> None:
    for call in calls:
        call()


def run_after(turns: int, loop: asyncio.AbstractEventLoop, calls: list[Call]) -> None:
    """Run all after so many turns of the event loop."""
    if turns:
        loop.call_soon(run_after, turns - 1, loop, calls)
    else:
        run_all(calls)


def settle(future: "asyncio.Future[object]", found: object) -> None:
    """Give a future its result or its error, unless nobody waits for it any more."""
    if future.done():
        return
    if isinstance(found, Exception):
        future.set_exception(found)
    else:
        future.set_result(found)
