"""The data part of a job: what its samples are, and how raw rows become them.

    names typed -> arrange -> open -> rows -> find_columns -> sample -> content

Ingest and the doctor both use the Schema, so that they read a file the same way. It need not be
about
text: a role may hold a path or numbers, and any string, such as a checksum, can identify a sample.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.columns import Columns, Role, find_columns
from glassformer.data.doctor.check import Check
from glassformer.data.doctor.default_checks import default_checks
from glassformer.data.rows import Row
from glassformer.data.samples import Sample


class Schema(ABC):
    """The data part of a job.

    Attributes:
        roles: The values of a sample, inputs first.
        groups: Names of columns that hold rows together where they have many different values.
        related_kinds: The keys of `related`.
        together: Those of them that hold rows together.
    """

    roles: tuple[Role, ...]
    groups: tuple[str, ...] = ()
    related_kinds: tuple[str, ...] = ()
    together: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        """What the input of a sample is called; by default, as its first role."""
        return self.roles[0].name

    def inputs(self) -> "Schema":
        """The schema without the answers, for prediction."""
        other = copy(self)
        other.roles = tuple(role for role in self.roles if not role.answer)
        return other

    def reading(self, columns: Mapping[str, str]) -> "Schema":
        """The schema of data with columns for these roles, where a job reads several kinds."""
        return self

    # How names become rows

    def arrange(self, names: Sequence[str]) -> list[str]:
        """The sources for names on the command line; two files may be one source."""
        return list(names)

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        """The rows of a source in a job-specific layout; None leaves it to the general readers."""
        return None

    def files(self, name: str) -> tuple[Path, ...]:
        """The files or folders of a source; of several, each holds one column."""
        return (Path(name),)

    def group_column(self, name: str, config: DataConfig) -> str | None:
        """The column that holds the rows of a source together, if its layout decides that."""
        return None

    def text_files(self, name: str) -> Sequence[Path]:
        """The text files of a source in a job-specific layout, whose encoding may be guessed."""
        return ()

    def recognises(self, name: str, config: DataConfig, rows: Iterator[Row]) -> bool:
        """Whether a source can only be for this job, if no job is given.

        Args:
            rows: Its rows, opened lazily.
        """
        return False

    # How rows become samples

    def find_columns(self, head: Sequence[Row], given: Mapping[str, str], *more: Role) -> Columns:
        """Which column plays each role, those of the job and more.

        Args:
            head: The first rows.
            given: Columns by role, as specified by the user.
        """
        return find_columns(head, (*self.roles, *more), given, self.guess)

    def guess(self, found: Columns, free: Sequence[str], head: Sequence[Row]) -> Columns:
        """The columns found by name, and guesses for the other roles."""
        found = dict(found)
        for role in self.roles:
            if role.required and role.name not in found and role.guess is not None:
                left = [column for column in free if column not in found.values()]
                if (column := role.guess(left, head)) is not None:
                    found[role.name] = column
        return found

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        """The sample of a row, and why it is left out, if it is: "empty text".

        A job may have other reasons, such as a file that it names and that is not there.
        """
        sample: Sample = {"where": row.where}
        for role in self.roles:
            if role.name in columns:
                value = self.value(role, row, columns)
                if role.required and isinstance(value, str) and (not value or value.isspace()):
                    return sample, f"empty {role.name}"
                sample[role.name] = value
        if "group" in columns:
            sample["group"] = row[columns["group"]]
        return sample, ""

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        """The value of a row for a role; JSON, or an array, which is stored as a list."""
        return row[columns[role.name]]

    # What is known of samples

    @abstractmethod
    def content(self, sample: Sample, config: DataConfig) -> str:
        """What makes two samples the same: equal strings for equal model inputs.

        Where no split is given, samples with equal content stay in one split.
        """

    def related(self, sample: Sample) -> Mapping[str, str]:
        """What samples of different content may share so that a model knows it by heart.

        Such as a transcript: the key is what it is called, the value is equal for samples with the
        same one.
        """
        return {}

    def stratum(self, sample: Sample) -> str | None:
        """What every split should have its share of, such as a label; None if there is nothing."""
        return None

    def time(self, sample: Sample) -> float | None:
        """When a sample happened, in seconds.

        Where all samples have a time, the last ones of each stratum are held out, for test those
        after valid, unless groups are.
        """
        return None

    def checks(self, config: Config) -> list[Check]:
        """The checks of the doctor."""
        return default_checks()
