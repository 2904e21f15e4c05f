"""Shards: the tokens of many texts, in several memory-mapped files.

Texts are tokenised in blocks, by all cores; a block is a shard. Whole blocks are kept in the cache,
by a hash of their texts and their tokenizer and with checksums, until the last is written: an
interrupted preparation goes on where it stopped.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
from jaxtyping import Int

from glassformer.data.batches import ahead
from glassformer.data.ragged import Ragged
from glassformer.data.text.coders import chunked
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.files import cache_folder, checksum, read_json, write_json

BLOCK = 2**26  # characters
CHUNK = 1 << 20  # tokens looked at together
FILES = (".values.npy", ".ends.npy")  # of a Ragged

Numbers = Int[np.ndarray, "..."]


class Shards:
    """Rows of tokens in several files, as if they were one."""

    def __init__(self, parts: Sequence[Ragged]) -> None:
        self.parts = parts
        self.ends = np.cumsum([len(part.values) for part in parts])  # of the tokens of each
        self.rows = np.cumsum([len(part) for part in parts])  # likewise of its rows

    @classmethod
    def write(cls, folder: Path, texts: Iterable[str], tokenizer: Tokenizer) -> None:
        """The tokens of these texts, as files in a folder."""
        staged = Staged(tokenizer)
        for number, block in enumerate(blocks(texts)):
            stem = folder / f"tokens-{number:05}"
            if sum(map(len, block)) < BLOCK:
                Ragged.write(stem, encoded(block, tokenizer))
            else:
                staged.take(block, stem)
        staged.remove()

    @classmethod
    def open(cls, folder: Path, *, below: int, rows: int) -> "Shards":
        """What `write` stored; tokens from `below` on, or another number of rows, are refused."""
        names = sorted(folder.glob(f"tokens-*{FILES[0]}"))
        stems = (path.with_name(path.name.removesuffix(FILES[0])) for path in names)
        found = cls([Ragged.open(stem, below=below) for stem in stems])
        if len(found) != rows:
            raise GlassformerError(
                f"{folder}: the tokens of {len(found):,} texts instead of {rows:,}, so a file of "
                f"tokens is missing; copy the run again"
            )
        return found

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return int(self.ends[-1]) if len(self.ends) else 0

    @cached_property
    def lengths(self) -> Int[np.ndarray, " rows"]:
        """The length of each row."""
        return np.concatenate([np.zeros(0, np.int64), *(part.lengths for part in self.parts)])

    @cached_property
    def starts(self) -> Int[np.ndarray, " rows"]:
        """Where each row begins among all tokens."""
        return np.cumsum(self.lengths) - self.lengths

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, row: int) -> Int[np.ndarray, " _"]:
        part = int(np.searchsorted(self.rows, row, side="right"))
        return self.parts[part][row - (int(self.rows[part - 1]) if part else 0)]

    def take(self, places: Numbers) -> Numbers:
        """The tokens at these places; a place outside gives the nearest token, or 0."""
        inside = np.clip(places, 0, max(0, self.size - 1))
        if len(self.parts) == 1 and self.size:
            return np.asarray(self.parts[0].values[inside])
        found = np.zeros(inside.shape, dtype=np.int32)
        of = np.searchsorted(self.ends, inside, side="right")
        for part in np.unique(of).tolist() if self.size else ():
            chosen = of == part
            first = int(self.ends[part - 1]) if part else 0
            found[chosen] = self.parts[part].values[inside[chosen] - first]
        return found

    def count(self, token: int) -> Int[np.ndarray, " rows"]:
        """How often a token is in each row."""
        found, ends = np.zeros(len(self), dtype=np.int64), self.starts + self.lengths
        for first in range(0, self.size, CHUNK):
            tokens = self.take(np.arange(first, min(first + CHUNK, self.size)))
            places = first + np.flatnonzero(tokens == token)
            np.add.at(found, np.searchsorted(ends, places, side="right"), 1)
        return found


def blocks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts by the block: the same ones for the same texts."""
    block, size = list[str](), 0
    for text in texts:
        block.append(text)
        size += len(text)
        if size >= BLOCK:
            yield block
            block, size = [], 0
    if block:
        yield block


def encoded(texts: Iterable[str], tokenizer: Tokenizer) -> Iterator[Int[np.ndarray, " _"]]:
    """The tokens of each text, by all cores."""
    for rows in ahead(tokenizer.encode, chunked(texts), os.cpu_count() or 1):
        yield from rows


class Staged:
    """Shards in the cache, for as long as the tokens of all texts are not complete."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        name = blake2b(tokenizer.to_json().encode(), digest_size=16).hexdigest()
        self.folder = cache_folder() / "tokens" / name
        self.used: list[Path] = []

    def take(self, texts: list[str], target: Path) -> None:
        """Put the shard of these texts at a place; tokenised unless it is in the cache."""
        digest = blake2b(digest_size=16)
        for text in texts:
            digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
        stem = self.folder / digest.hexdigest()
        if not self._is_whole(stem):
            Ragged.write(stem, encoded(texts, self.tokenizer))
            write_json({end: checksum(with_end(stem, end)) for end in FILES}, sums_of(stem))
        for end in FILES:
            copied(with_end(stem, end), with_end(target, end))
        self.used.append(stem)

    def _is_whole(self, stem: Path) -> bool:
        try:
            known = read_json(sums_of(stem))
            return all(known[end] == checksum(with_end(stem, end)) for end in FILES)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def remove(self) -> None:
        """Remove what was taken: the run has it."""
        for stem in self.used:
            for path in (sums_of(stem), *(with_end(stem, end) for end in FILES)):
                path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()


def with_end(stem: Path, end: str) -> Path:
    """The file of a stem."""
    return stem.with_name(stem.name + end)


def sums_of(stem: Path) -> Path:
    """The file with the checksums of a shard."""
    return with_end(stem, ".json")


def copied(source: Path, target: Path) -> None:
    """The same file under another name, without a second copy where the disk allows."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
