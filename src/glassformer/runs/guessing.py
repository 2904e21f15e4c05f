"""Which jobs fit some data: by what only one of them reads, by names, by the columns they find."""

from collections.abc import Iterator

from glassformer.config import DataConfig
from glassformer.data.columns import GROUP, SPLIT, Columns, normal_name
from glassformer.data.doctor.reading import Reading
from glassformer.data.rows import Row
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS


def other_job(data: DataConfig, job: str) -> str | None:
    """Another job that the data are for: one that recognises them, or that finds its answers."""
    others = [other for other in JOBS if other != job]
    fitting = (other for other in others if columns_read(data, other)[1])
    return next((other for other in others if recognised(data, other)), next(fitting, None))


def likelier_job(data: DataConfig, job: str) -> str | None:
    """Another job that recognises the data, where the answers of this one were guessed."""
    answers = [role for role in JOBS[job].schema.roles if role.answer]
    if not answers or data.columns or answers_named(data, job):
        return None
    return next((other for other in JOBS if other != job and recognised(data, other)), None)


def recognised(data: DataConfig, job: str) -> bool:
    """Whether the first file can only be for this job; columns that are given win."""
    schema = JOBS[job].schema

    def rows() -> Iterator[Row]:
        yield from first.open()

    try:
        first = Reading(data, schema).sources[0]
        roles = {role.name for role in (*schema.roles, GROUP, SPLIT)}
        return {*data.columns} <= roles and schema.recognises(first.name, data, rows())
    except GlassformerError:
        return False


def columns_read(data: DataConfig, job: str) -> tuple[Columns, Columns]:
    """The columns of a job's inputs and of its answers; none if it cannot read the first row."""
    schema = JOBS[job].schema
    answers = {role.name for role in schema.roles if role.answer}
    try:
        source = Reading(data, schema).sources[0]
        row = next(source.open(), None)
        if row is None or schema.sample(row, source.columns)[1]:
            return {}, {}
    except GlassformerError:
        return {}, {}
    required = {role.name for role in schema.roles if role.required}
    used = {role: column for role, column in source.columns.items() if role in required}
    return (
        {role: column for role, column in used.items() if role not in answers},
        {role: column for role, column in used.items() if role in answers},
    )


def answers_named(data: DataConfig, job: str) -> bool:
    """Whether a job finds all of its columns, and those of its answers by their names."""
    schema = JOBS[job].schema
    answers = [role for role in schema.roles if role.answer and role.required]
    try:
        columns = Reading(data, schema).sources[0].columns
    except GlassformerError:
        return False
    named = [normal_name(columns.get(role.name, "")) in role.names for role in answers]
    return bool(answers) and all(named)
