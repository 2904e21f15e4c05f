"""Two text files that are given side by side, train.de train.en: which of them make a pair."""

import re
from collections.abc import Sequence
from pathlib import Path

from glassformer.data.ingest import is_file
from glassformer.data.sources.files import packing_of, suffix_of
from glassformer.data.sources.formats import is_table
from glassformer.data.sources.parallel import AND, paired, side_lines
from glassformer.errors import GlassformerError

NEARLY = 0.05  # of the lines of a file may lack in the other, if the two are references as a pair,
SOME_LINES, OF_THEM = 20, 0.1  # or so many, if they are no larger share

NUMBERS = re.compile(r"\d+")


def pair_files(names: Sequence[str]) -> list[str]:
    """The names, with every two plain text files in a row made one name.

    Tables hold both sides, and folders and sets have their own ways: they stay as they are.
    """
    found: list[str] = []
    waiting: str | None = None
    for name in names:
        if paired(name) or not is_file(name) or is_table(Path(name)):
            found.append(name)
        elif waiting is None:
            waiting = name
        else:
            _refuse_twins(Path(waiting), Path(name))
            found.append(f"{waiting}{AND}{name}")
            waiting = None
    if waiting is not None:
        raise GlassformerError(
            f"{waiting}: a text file by itself has one side only; give it with its partner, as in "
            f"train.de train.en, or let its name end in .tsv if each line has both, a tab between"
        )
    return found


def has_nearly_as_many_lines(source: Path, target: Path, encoding: str | None) -> bool:
    """Whether two files are references as a pair by how many lines they have, though some may lack.

    Numbered parts of one text, whose names differ in numbers alone, are none if any line lacks.
    """
    fewer, more = sorted(sum(1 for _ in side_lines(path, encoding)) for path in (source, target))
    lacking = more - fewer
    if lacking and NUMBERS.sub("", source.name) == NUMBERS.sub("", target.name):
        return False
    return lacking <= max(NEARLY * more, min(SOME_LINES, OF_THEM * more))


def end_apart(one: Path, other: Path) -> bool:
    """Whether two names differ in their endings alone, which are words rather than numbers.

    >>> end_apart(Path("train.en.gz"), Path("train.de.gz")), end_apart(Path("x.1"), Path("x.2"))
    (True, False)
    """
    ends = [suffix_of(path) for path in (one, other)]
    bare = [str(path).removesuffix(packing_of(path)) for path in (one, other)]
    begins = {name[: len(name) - len(end)] for name, end in zip(bare, ends, strict=True)}
    return len(begins) == 1 and all(end[1:2].isalpha() for end in ends)


def _refuse_twins(source: Path, target: Path) -> None:
    """Two files of one language are no pair."""
    language = suffix_of(source)
    if language == suffix_of(target) and language not in ("", ".txt"):
        raise GlassformerError(
            f"{source} and {target.name}: both end in {language}, so they are no pair; name each "
            f"source right before its target, as in train.de train.en"
        )
