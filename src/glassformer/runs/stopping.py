"""Signals during training: the first stops it gracefully, the second immediately.

SIGHUP, which a closed terminal sends, stops it gracefully however often it comes.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from glassformer import processes
from glassformer.files import send_nowhere

HANGUP = getattr(signal, "SIGHUP", None)  # when a terminal is closed; Windows has none
SIGNALS = tuple(filter(None, (signal.SIGINT, signal.SIGTERM, HANGUP)))


class Stopping:
    """Whether training should stop."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        return self.signal is not None


@contextmanager
def stopping(say: Callable[[str], None]) -> Iterator[Stopping]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into a request to stop; on exit the signal takes effect."""
    state = Stopping()
    if threading.current_thread() is not threading.main_thread():
        yield state
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}
    if before.get(HANGUP) is signal.SIG_IGN:  # nohup: the run outlives its terminal
        del before[HANGUP]

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def request_stop(number: int, frame: FrameType | None) -> None:
        if state.signal is None:
            state.signal = number
            try:
                say("stopping after this step, with a checkpoint; repeat to stop immediately")
            except OSError:  # the terminal is gone
                send_nowhere(sys.stdout)
                send_nowhere(sys.stderr)
        elif number == HANGUP:  # a terminal that is closed sends it more than once
            return
        elif not processes.is_launched():  # which repeats every signal
            restore()
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, request_stop)
    try:
        yield state
    finally:
        restore()
    if state.signal is not None:
        if before[signal.Signals(state.signal)] is signal.SIG_DFL:
            sys.exit(128 + state.signal)
        signal.raise_signal(state.signal)
