"""Standard output that may fail before the command ends: a closed pipe, or a full disk."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO, cast

from glassformer.errors import GlassformerError
from glassformer.files import send_nowhere


class Output:
    """A stream that exits quietly on a closed pipe, and with a one-line error on other failures.

    Args:
        stream: The stream written to; other attributes pass through.
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        try:
            written: int = self.stream.write(text)
        except OSError as error:
            self._stop(error)
        return written

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError as error:
            self._stop(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def _stop(self, error: OSError) -> NoReturn:
        send_nowhere(self.stream)  # or flushing the rest at exit would fail
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            sys.exit(0)
        raise GlassformerError(
            f"cannot write to standard output ({error.strerror}); free some space, or redirect it"
        ) from None


@contextmanager
def watched_output() -> Iterator[None]:
    """Standard output as `Output` while a command runs; a closed one is refused first."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        raise GlassformerError("standard output is closed; redirect it to a file or to /dev/null")
    before = sys.stdout
    sys.stdout = cast(TextIO, Output(before))
    try:
        yield
    except SystemExit:  # every command ends this way
        with suppress(SystemExit):
            sys.stdout.flush()
        raise
    finally:
        sys.stdout = before
