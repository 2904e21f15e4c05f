"""Standard output that may fail before the command ends: a closed pipe, or a full disk."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

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
        with self._watched():
            written: int = self.stream.write(text)
        return written

    def flush(self) -> None:
        with self._watched():
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:  # the reader has seen enough
            send_nowhere(self.stream)  # or flushing the rest at exit would fail
            sys.exit(0)
        except OSError as error:
            send_nowhere(self.stream)
            raise GlassformerError(
                f"cannot write to standard output ({error.strerror}); free some space, or "
                f"redirect it"
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
