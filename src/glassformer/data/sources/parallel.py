"""Two plain text files whose lines are each other's translations: `train.de` and `train.en`.

A row is one line of each, with columns `source` and `target`; its location names both files, and
its number is the line. Files of different length are refused: the error names the line where they
seem to diverge, by the lengths of their lines.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import numpy as np

from glassformer.data.rows import Row
from glassformer.data.sources.decoding import check_codec, lines
from glassformer.errors import GlassformerError

AND = " + "  # between the names of two files that are read together
FARTHEST = 2.0  # maximal cost of one pair of lines, so that no pair dominates

Lengths = Sequence[int]


def read_parallel(source: Path, target: Path, encoding: str | None) -> Iterator[Row]:
    """One row per line; a line that is blank in both files is skipped but counted."""
    if encoding is not None:
        check_codec(encoding)
    beside = target.name if source.parent == target.parent else str(target)
    file, empty = f"{source}{AND}{beside}", True
    sides = (side_lines(path, encoding) for path in (source, target))
    for number, (one, other) in enumerate(zip_longest(*sides), start=1):
        if one is None or other is None:
            raise _uneven(source, target, encoding)
        if one.strip() or other.strip():
            empty = False
            yield Row({"source": one, "target": other}, file, number)
    if empty:
        raise GlassformerError(
            f"{file}: no rows, only blank lines; give files with at least one row"
        )


def paired(name: str) -> tuple[Path, Path] | None:
    """The two files that a name stands for, if it stands for two.

    >>> paired("train.de + train.en")
    (PosixPath('train.de'), PosixPath('train.en'))
    """
    source, both, target = name.partition(AND)
    return (Path(source), Path(target)) if both and not Path(name).exists() else None


def diverging_line(source: Lengths, target: Lengths) -> int:
    """The line, counted from 1, where two files of different length seem to diverge.

    Before it, lines match one to one; after it, the longer file is shifted by its extra lines. It
    is the line where the lengths match best.

    >>> diverging_line([3, 9, 40, 8, 30, 5], [3, 9, 8, 30, 5])
    3
    """
    if len(source) > len(target):
        source, target = target, source
    if not source:
        return 1
    short, long = np.log1p(source), np.log1p(target)
    offset = np.median(long) - np.median(short)
    ahead = len(long) - len(short)
    together = np.minimum(abs(long[: len(short)] - short - offset), FARTHEST)
    apart = np.minimum(abs(long[ahead:] - short - offset), FARTHEST)
    costs = np.concatenate([[0.0], np.cumsum(together)])
    costs += np.concatenate([np.cumsum(apart[::-1])[::-1], [0.0]])
    return int(len(costs) - np.argmin(costs[::-1]))  # of ties the last, like the ends of the files


def side_lines(path: Path, encoding: str | None) -> Iterator[str]:
    """The lines of one of two files, without line ends."""
    return (line.rstrip("\r\n") for line in lines(path, encoding, newline="\n"))


def _uneven(source: Path, target: Path, encoding: str | None) -> GlassformerError:
    """The error for two files of different length."""
    counts = [array("L", map(len, side_lines(path, encoding))) for path in (source, target)]
    shorter = min(zip(counts, (source, target), strict=True), key=lambda side: len(side[0]))
    line = diverging_line(*counts)
    advice = (
        f"all of {shorter[1].name} seems to match, so it may be truncated; give the full file"
        if line > len(shorter[0])
        else f"they seem to diverge near line {line}; fix them there"
    )
    return GlassformerError(
        f"{source}: {len(counts[0]):,} lines, but {target} has {len(counts[1]):,}, and each line "
        f"needs its translation; {advice}"
    )
