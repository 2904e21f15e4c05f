"""The verb `doctor`: look through raw data for what a training would stumble over."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from glassformer.data.columns import find_columns
from glassformer.data.doctor import Examination, Reading, examine
from glassformer.data.ingest import LOOKED_AT
from glassformer.data.sources.files import packing_of, suffix_of
from glassformer.data.sources.parallel import has_nearly_as_many_lines, paired
from glassformer.errors import GlassformerError
from glassformer.runs.asked import Asked, ask
from glassformer.runs.display import Display
from glassformer.tasks import JOBS

PAIRS = "translate"  # the job that learns from pairs
BY_NAME = ("source?", "target?")  # what may be missing is found by its whole name only
OF_TEXTS = {"text", "label"}  # columns of other jobs


def doctor(
    *data: str | Path, job: str | None = None, quiet: bool = False, **asked: Any
) -> Examination:
    """Examine raw data: `glassformer.doctor("reviews.csv").findings`.

    Args:
        data: Files, folders or names of the catalog.
        job: What they are for; by default what fits, see `likely`.
        quiet: Whether to say nothing meanwhile.
        asked: As for `train`: valid, test, columns, group, settings.
    """
    choices = [ask(name, data, **asked) for name in ([job] if job else JOBS)]
    return examine_as(likely(choices), Display(quiet=quiet))


def likely(choices: Sequence[Asked]) -> Asked:
    """The job that the first of the data are for, where there is a choice.

    Pairs are for translate. They are

        a TMX;
        two text files whose names differ in their endings alone, as those of train.en and train.de,
        or that have as many lines, or nearly;
        columns with names of a source and of a target, and none that is called text or label.

    Anything else is for the first job that finds its columns: classify, pretrain, translate.
    """
    for asked in choices if len(choices) > 1 else ():
        if asked.job == PAIRS and holds_pairs(asked):
            return asked
    errors = []
    for asked in choices:
        try:
            reading_of(asked).sources[0].open()
        except GlassformerError as error:
            errors.append(error)
        else:
            return asked
    raise errors[0]


def holds_pairs(asked: Asked) -> bool:
    """Whether the first of the data are pairs, as `likely` says; columns that are told win."""
    try:
        first = reading_of(asked).sources[0]
        if {*first.config.columns} & OF_TEXTS:
            return False
        if suffix_of(Path(first.name)) == ".tmx":
            return True
        if two := paired(first.name):
            return end_apart(*two) or has_nearly_as_many_lines(*two, first.config.encoding)
        head = list(islice(first.open(), LOOKED_AT))
    except GlassformerError:
        return False
    called = {column.strip().casefold() for row in head for column in row.values}
    return len(find_columns(head, BY_NAME, {})) == len(BY_NAME) and not called & OF_TEXTS


def end_apart(one: Path, other: Path) -> bool:
    """Whether two names differ in their endings alone, which are words rather than numbers.

    >>> end_apart(Path("train.en.gz"), Path("train.de.gz")), end_apart(Path("x.1"), Path("x.2"))
    (True, False)
    """
    ends = [suffix_of(path) for path in (one, other)]
    bare = [str(path).removesuffix(packing_of(path)) for path in (one, other)]
    begins = {name[: len(name) - len(end)] for name, end in zip(bare, ends, strict=True)}
    return len(begins) == 1 and all(end[1:2].isalpha() for end in ends)


def examine_as(asked: Asked, display: Display) -> Examination:
    """Show the data to the checks of their job."""
    config = asked.settle()
    checks = JOBS[asked.job].task.checks(config)
    with display.counting("reading rows") as seen:
        found = examine(reading_of(asked), checks, seed=config.seed, seen=seen)
    return replace(found, job=asked.job)


def reading_of(asked: Asked) -> Reading:
    """The data, with what the job needs of them."""
    return Reading(asked.settle().data, JOBS[asked.job].task.roles)
