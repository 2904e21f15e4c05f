"""Parallel text files, such as train.de train.en: which of them form a pair."""

import re
from collections.abc import Sequence
from pathlib import Path

from glassformer.data.ingest import is_file
from glassformer.data.sources.files import packing_of, suffix_of
from glassformer.data.sources.formats import is_table
from glassformer.data.sources.parallel import AND, paired, side_lines
from glassformer.errors import GlassformerError

NEARLY = 0.05  # of the lines of one file may be missing in the other, if the two are a pair,
SOME_LINES, OF_THEM = 20, 0.1  # or 20 lines, if they are at most a tenth

NUMBERS = re.compile(r"\d+")


def pair_files(names: Sequence[str]) -> list[str]:
    """The names, with every two consecutive plain text files joined into one name.

    Tables contain both sides, and folders and datasets are handled elsewhere: they are unchanged.
    """
    found: list[str] = []
    waiting: str | None = None
    for name in names:
        if paired(name) or not is_file(name) or is_table(Path(name)):
            found.append(name)
        elif waiting is None:
            waiting = name
        else:
            _refuse_same_language(Path(waiting), Path(name))
            found.append(f"{waiting}{AND}{name}")
            waiting = None
    if waiting is not None:
        raise GlassformerError(
            f"{waiting}: a single text file has only one side; give both files, as in "
            f"train.de train.en, or rename it to .tsv if each line has both, separated by a tab"
        )
    return found


def has_nearly_as_many_lines(source: Path, target: Path, encoding: str | None) -> bool:
    """Whether two files look like a pair by their numbers of lines, which may differ slightly.

    Names that differ only in numbers look like parts of one text, and must match exactly.
    """
    fewer, more = sorted(sum(1 for _ in side_lines(path, encoding)) for path in (source, target))
    missing = more - fewer
    if missing and NUMBERS.sub("", source.name) == NUMBERS.sub("", target.name):
        return False
    return missing <= max(NEARLY * more, min(SOME_LINES, OF_THEM * more))


def end_apart(one: Path, other: Path) -> bool:
    """Whether two names differ only in their endings, which are words rather than numbers.

    >>> end_apart(Path("train.en.gz"), Path("train.de.gz")), end_apart(Path("x.1"), Path("x.2"))
    (True, False)
    """
    ends = [suffix_of(path) for path in (one, other)]
    bare = [str(path).removesuffix(packing_of(path)) for path in (one, other)]
    begins = {name[: len(name) - len(end)] for name, end in zip(bare, ends, strict=True)}
    return len(begins) == 1 and all(end[1:2].isalpha() for end in ends)


def _refuse_same_language(source: Path, target: Path) -> None:
    """Refuse two files of one language."""
    language = suffix_of(source)
    if language == suffix_of(target) and language not in ("", ".txt"):
        raise GlassformerError(
            f"{source} and {target.name}: both end in {language}, so they are not a pair; put each "
            f"source right before its target, as in train.de train.en"
        )
