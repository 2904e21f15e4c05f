"""Texts on their way: written once, read a few times in order, gone with the object."""

from array import array
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from weakref import finalize

MOST_ROWS, MOST_CHARACTERS = 512, 1 << 17  # of a chunk, about


class Spool:
    """Texts in a file without a name, in chunks; invalid Unicode round-trips unchanged.

    Args:
        folder: Where there is room for the file.
    """

    def __init__(self, folder: Path) -> None:
        self.file = TemporaryFile(dir=folder)  # noqa: SIM115
        finalize(self, self.file.close)
        self.lengths = array("L")  # characters of each text
        self.sizes = array("L")  # bytes of each chunk
        self.rows = array("L")  # texts in each chunk
        self.pending: list[str] = []
        self.characters = 0  # of what is pending

    def append(self, text: str) -> None:
        """Add a text."""
        self.pending.append(text)
        self.characters += len(text)
        if len(self.pending) == MOST_ROWS or self.characters > MOST_CHARACTERS:
            self.flush()

    def flush(self) -> None:
        """Write what is pending."""
        self.sizes.append(self.file.write("".join(self.pending).encode("utf-8", "surrogatepass")))
        self.rows.append(len(self.pending))
        self.lengths.extend(map(len, self.pending))
        self.pending, self.characters = [], 0

    def __len__(self) -> int:
        return len(self.lengths) + len(self.pending)

    def __iter__(self) -> Iterator[str]:
        if self.pending:
            self.flush()
        start = row = 0
        for size, rows in zip(self.sizes, self.rows, strict=True):
            self.file.seek(start)  # another iteration may have moved it
            chunk = self.file.read(size).decode("utf-8", "surrogatepass")
            begin = 0
            for length in self.lengths[row : row + rows]:
                yield chunk[begin : begin + length]
                begin += length
            start, row = start + size, row + rows
