"""The verb `doctor`: look through raw data for what a training would stumble over."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.data.columns import GROUP, SPLIT
from glassformer.data.doctor.examination import Examination, examine
from glassformer.data.doctor.reading import Reading
from glassformer.data.rows import Row
from glassformer.errors import GlassformerError
from glassformer.runs.asked import Asked, ask
from glassformer.runs.display import Display
from glassformer.tasks import JOBS


def doctor(
    *data: str | Path, job: str | None = None, quiet: bool = False, **asked: Any
) -> Examination:
    """Examine raw data: `glassformer.doctor("reviews.csv").findings`.

    Args:
        data: Files, folders or names of the catalog.
        job: What they are for; by default what fits, see `likely`.
        quiet: Whether to suppress progress output.
        asked: As for `train`: valid, test, columns, group, settings.
    """
    choices = [ask(name, data, **asked) for name in ([job] if job else JOBS)]
    return examine_as(likely(choices), Display(quiet=quiet))


def likely(choices: Sequence[Asked]) -> Asked:
    """The job that the first of the data are for, where there is a choice.

    That is the job whose schema recognises them as its own, else the first that finds its columns.
    """
    for asked in choices if len(choices) > 1 else ():
        if recognised(asked):
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


def recognised(asked: Asked) -> bool:
    """Whether the first of the data can only be meant for the job; roles that are given win."""
    schema = JOBS[asked.job].schema

    def rows() -> Iterator[Row]:
        yield from first.open()

    try:
        first = reading_of(asked).sources[0]
        roles = {role.name for role in (*schema.roles, GROUP, SPLIT)}
        return {*first.config.columns} <= roles and schema.recognises(
            first.name, first.config, rows()
        )
    except GlassformerError:
        return False


def examine_as(asked: Asked, display: Display) -> Examination:
    """Show the data to the checks of their job."""
    config = asked.settle()
    checks = JOBS[asked.job].schema.checks(config)
    with display.counting("reading rows") as seen:
        found = examine(reading_of(asked), checks, seed=config.seed, seen=seen)
    return replace(found, job=asked.job)


def reading_of(asked: Asked) -> Reading:
    """The data, with what the job needs of them."""
    return Reading(asked.settle().data, JOBS[asked.job].schema)
