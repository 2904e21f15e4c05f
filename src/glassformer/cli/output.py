"""Standard output that may end before the command does: its reader leaves, or the disk is full."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from glassformer.errors import GlassformerError
from glassformer.files import send_nowhere


class Output:
    """A stream that ends the command quietly when nobody reads on, and in one line when it breaks.

    Args:
        stream: What is written to; all else about it stays as it is.
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
        except BrokenPipeError:  # whoever reads has seen enough
            send_nowhere(self.stream)  # or the end of the program would fail at what is left
            sys.exit(0)
        except OSError as error:
            send_nowhere(self.stream)
            raise GlassformerError(
                f"standard output cannot be written to ({error.strerror}); free some space, or "
                f"send it elsewhere"
            ) from None


@contextmanager
def watched_output() -> Iterator[None]:
    """Standard output as `Output` while a command runs; a closed one is refused before."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        raise GlassformerError("standard output is closed; send it to a file, or to /dev/null")
    before = sys.stdout
    sys.stdout = cast(TextIO, Output(before))
    try:
        yield
    except SystemExit:  # as every command ends
        with suppress(SystemExit):
            sys.stdout.flush()
        raise
    finally:
        sys.stdout = before
