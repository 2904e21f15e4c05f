"""Which jobs fit some data: by what only one of them reads, by names, by the columns they find."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from glassformer.config import DataConfig
from glassformer.data.columns import GROUP, SPLIT, Columns, normal_name
from glassformer.data.doctor.files import Encoding
from glassformer.data.doctor.reading import Reading, Source
from glassformer.data.rows import Row
from glassformer.data.schema import Schema
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS


@dataclass
class Candidate:
    """A job that data may be for, by their first file; each question is answered once.

    Attributes:
        encodings: Those of files that were read before, for all candidates.
    """

    job: str
    data: DataConfig
    encodings: dict[str, Encoding]

    @property
    def schema(self) -> Schema:
        """The data part of the job."""
        return JOBS[self.job].schema

    @cached_property
    def source(self) -> Source:
        """The first file; refused if the job cannot read it or does not find its columns."""
        source = Reading(self.data, self.schema, self.encodings).sources[0]
        self.first = next(source.open(), None)
        return source

    @cached_property
    def found(self) -> Columns:
        """The columns by role; none if there are not all of them."""
        try:
            return self.source.columns
        except GlassformerError:
            return {}

    @cached_property
    def recognised(self) -> bool:
        """Whether the file can only be for this job; columns that are given win."""

        def rows() -> Iterator[Row]:
            yield from first.open()

        try:
            first = Reading(self.data, self.schema, self.encodings).sources[0]
            roles = {role.name for role in (*self.schema.roles, GROUP, SPLIT)}
            return {*self.data.columns} <= roles and self.schema.recognises(
                first.name, self.data, rows()
            )
        except GlassformerError:
            return False

    @cached_property
    def columns_read(self) -> tuple[Columns, Columns]:
        """The columns of the inputs and of the answers; none if the first row cannot be read."""
        if not self.found or self.first is None or self.schema.sample(self.first, self.found)[1]:
            return {}, {}
        used = {role.name: role.answer for role in self.schema.roles if role.required}
        inputs, answers = (
            {role: column for role, column in self.found.items() if used.get(role) is answer}
            for answer in (False, True)
        )
        return inputs, answers

    @cached_property
    def answers_named(self) -> bool:
        """Whether all columns are found, and those of the answers by their names."""
        answers = [role for role in self.schema.roles if role.answer and role.required]
        named = [normal_name(self.found.get(role.name, "")) in role.names for role in answers]
        return bool(answers) and bool(self.found) and all(named)


def candidates(data: Mapping[str, DataConfig]) -> list[Candidate]:
    """A candidate for each job, with the data as it would read them."""
    encodings: dict[str, Encoding] = {}
    return [Candidate(job, one, encodings) for job, one in data.items()]


def other_job(data: DataConfig, job: str) -> str | None:
    """Another job that the data are for: one that recognises them, or that finds its answers."""
    others = candidates({other: data for other in JOBS if other != job})
    fitting = (other.job for other in others if other.columns_read[1])
    return next((other.job for other in others if other.recognised), next(fitting, None))


def likelier_job(data: DataConfig, job: str) -> str | None:
    """Another job that recognises the data, where the answers of this one were guessed."""
    this, *others = candidates({job: data} | {other: data for other in JOBS if other != job})
    if data.columns or this.answers_named or not any(role.answer for role in this.schema.roles):
        return None
    return next((other.job for other in others if other.recognised), None)
