"""The verb `doctor`: examine raw data for problems before training."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from glassformer.data.columns import GROUP, SPLIT
from glassformer.data.doctor.examination import Examination, examine
from glassformer.data.doctor.reading import Reading
from glassformer.data.rows import Row
from glassformer.errors import GlassformerError
from glassformer.runs.display import Display
from glassformer.runs.request import TrainRequest, train_request
from glassformer.tasks import JOBS


def doctor(
    *data: str | Path, job: str | None = None, quiet: bool = False, **options: Any
) -> Examination:
    """Examine raw data: `glassformer.doctor("reviews.csv").findings`.

    Args:
        data: Files, folders or names of the catalog.
        job: What the data are for; by default guessed, see `likely`.
        quiet: Whether to suppress progress output.
        options: As for `train`: valid, test, columns, group, settings.
    """
    choices = [train_request(name, data, **options) for name in ([job] if job else JOBS)]
    request = likely(choices)
    config = request.resolve()
    checks = JOBS[request.job].schema.checks(config)
    with Display(quiet=quiet).counting("reading rows") as seen:
        found = examine(reading_of(request), checks, seed=config.seed, seen=seen)
    return replace(found, job=request.job)


def likely(choices: Sequence[TrainRequest]) -> TrainRequest:
    """The request whose job fits the first file.

    That is the job whose schema recognises it, else the first job that finds its columns.
    """
    for request in choices if len(choices) > 1 else ():
        if recognised(request):
            return request
    errors = []
    for request in choices:
        try:
            reading_of(request).sources[0].open()
        except GlassformerError as error:
            errors.append(error)
        else:
            return request
    raise errors[0]


def recognised(request: TrainRequest) -> bool:
    """Whether the first file can only be for this job; columns that are given win."""
    schema = JOBS[request.job].schema

    def rows() -> Iterator[Row]:
        yield from first.open()

    try:
        first = reading_of(request).sources[0]
        roles = {role.name for role in (*schema.roles, GROUP, SPLIT)}
        return {*first.config.columns} <= roles and schema.recognises(
            first.name, first.config, rows()
        )
    except GlassformerError:
        return False


def reading_of(request: TrainRequest) -> Reading:
    """The data, read by the schema of the job."""
    return Reading(request.resolve().data, JOBS[request.job].schema)
