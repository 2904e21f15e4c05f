"""The result of a study of a run, such as where its heads look: a table and what it comes to.

It shows itself in a terminal and in a notebook, and is written as a page, a picture or JSON.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from glassformer import notebook
from glassformer.explaining.views.output import check_out
from glassformer.explaining.views.table_picture import draw_tables
from glassformer.files import write_json, write_text
from glassformer.reports.page import page
from glassformer.reports.record import Report, Table
from glassformer.terminal import aligned


class StudyResult(ABC):
    """A table with a title above and sentences below.

    Attributes:
        name: Its name in JSON, where it is one of several.
    """

    name: ClassVar[str] = ""

    @property
    @abstractmethod
    def title(self) -> str:
        """What was measured, on how many rows."""

    @property
    @abstractmethod
    def header(self) -> list[str]:
        """The names of the columns."""

    @abstractmethod
    def lines(self) -> list[list[str]]:
        """The cells of the table."""

    def sentences(self) -> list[str]:
        """What the table comes to."""
        return []

    @abstractmethod
    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""

    def __repr__(self) -> str:
        return "\n".join([self.title, aligned([self.header, *self.lines()]), *self.sentences()])

    def _repr_html_(self) -> str:
        table = notebook.table(self.title, self.lines(), self.header)
        return table + notebook.paragraphs(self.sentences())


def write_study(results: Sequence[StudyResult], path: Path, *, title: str) -> None:
    """Write results in the format that the path ends in."""
    check_out(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        write_json(study_values(results), path)
    elif suffix == ".html":
        tables = [
            Table(
                title=one.title,
                header=one.header,
                rows=one.lines(),
                note=". ".join(one.sentences()),
            )
            for one in results
        ]
        write_text(page(Report(title=title, tables=tables)), path)
    else:
        draw_tables([(r.title, [r.header, *r.lines()], r.sentences()) for r in results], path)


def study_values(results: Sequence[StudyResult]) -> dict[str, Any]:
    """Plain values, for JSON: of the first, with others under their names."""
    first, *others = results
    return first.as_values() | {one.name: one.as_values() for one in others}
