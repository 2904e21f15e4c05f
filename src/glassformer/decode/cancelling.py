"""Cancelling: a search that nobody waits for any more ends at its next step.

A search checks `raise_if_cancelled` at every step; whoever starts it says when that is the case:

    with cancelled_when(lambda: client_has_gone):
        decode(scorer, request, config)
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_CANCELLED: ContextVar[Callable[[], bool] | None] = ContextVar("_CANCELLED", default=None)


class SearchCancelledError(Exception):
    """Nobody waits for the answer."""


@contextmanager
def cancelled_when(condition: Callable[[], bool]) -> Iterator[None]:
    """Searches in this thread end with `SearchCancelledError` once the condition holds."""
    token = _CANCELLED.set(condition)
    try:
        yield
    finally:
        _CANCELLED.reset(token)


def raise_if_cancelled() -> None:
    """To be called at every step of a search."""
    condition = _CANCELLED.get()
    if condition is not None and condition():
        raise SearchCancelledError
