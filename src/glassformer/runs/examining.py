"""The verb `doctor`: look through raw data for what a training would stumble over."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.data.doctor import Examination, Reading, examine
from glassformer.errors import GlassformerError
from glassformer.runs.asked import Asked
from glassformer.runs.asking import ask
from glassformer.runs.display import Display
from glassformer.tasks import JOBS


def doctor(
    *data: str | Path, job: str | None = None, quiet: bool = False, **asked: Any
) -> Examination:
    """Examine raw data: `glassformer.doctor("reviews.csv").findings`.

    Args:
        data: Files, folders or names of the catalog.
        job: What they are for; by default the first job that finds its columns in them.
        quiet: Whether to say nothing meanwhile.
        asked: As for `train`: valid, test, columns, group, settings.
    """
    choices = [ask(name, data, **asked) for name in ([job] if job else JOBS)]
    return examine_as(likely(choices), Display(quiet=quiet))


def likely(choices: Sequence[Asked]) -> Asked:
    """The first whose job finds what it needs in the first file; there may be only one."""
    errors = []
    for asked in choices:
        try:
            reading_of(asked).sources[0].open()
        except GlassformerError as error:
            errors.append(error)
        else:
            return asked
    raise errors[0]


def examine_as(asked: Asked, display: Display) -> Examination:
    """Show the data to the checks of their job."""
    checks = JOBS[asked.job].checks(asked.settle())
    with display.counting("reading rows") as seen:
        found = examine(reading_of(asked), checks, seen=seen)
    return replace(found, job=asked.job)


def reading_of(asked: Asked) -> Reading:
    """The data, with what the job needs of them."""
    return Reading(asked.settle().data, JOBS[asked.job].roles)
