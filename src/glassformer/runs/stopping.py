"""Signals while a model learns: the first one asks it to stop well, the second stops it at once."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from glassformer import processes

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopping:
    """Whether someone wants the training to stop."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        return self.signal is not None


@contextmanager
def stopping(say: Callable[[str], None]) -> Iterator[Stopping]:
    """Ctrl-C and SIGTERM, turned into a wish; at the end they do what they would have done."""
    found = Stopping()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def wish(number: int, frame: FrameType | None) -> None:
        if found.signal is None:
            found.signal = number
            say("stops after this step and saves; again to stop at once")
        elif not processes.is_launched():  # which repeats every signal
            restore()
            signal.raise_signal(number)

    for number in SIGNALS:
        signal.signal(number, wish)
    try:
        yield found
    finally:
        restore()
    if found.signal is not None:
        if before[signal.Signals(found.signal)] is signal.SIG_DFL:
            sys.exit(128 + found.signal)
        signal.raise_signal(found.signal)
