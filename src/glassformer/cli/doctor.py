"""`glassformer doctor`: what is wrong with data, row by row, before a model learns from it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from glassformer.cli.options import Columns, Files
from glassformer.tasks import JOBS
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from glassformer.data.doctor.cleaning import Cleaned
    from glassformer.data.doctor.examination import Examination
    from glassformer.data.doctor.finding import Finding

COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
WIDEST = 30  # characters of a bar
SHOWN = 20  # lines of a table


def doctor(
    data: Files,
    job: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(JOBS)}; by default what fits.")
    ] = None,
    valid: Annotated[list[str], typer.Option(help="Data to choose the model by.")] = [],  # noqa: B006
    test: Annotated[list[str], typer.Option(help="Data to score it on at the end.")] = [],  # noqa: B006
    columns: Columns = "",
    group: Annotated[
        str | None, typer.Option(metavar="COL", help="Rows that agree here belong together.")
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="key=value", help="A setting, as for train.")
    ] = [],  # noqa: B006
    fix: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write a cleaned copy to a new place.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
) -> None:
    """Examine data before training: what is wrong, in which rows, and what to do.

    Exits with 1 where it finds an error, and with 0 for warnings and notes.

    Example: glassformer doctor reviews.csv --fix clean.csv
    """
    from glassformer.runs.doctor import doctor as examine

    roles = {"columns": columns} if columns else {}
    given = {"valid": valid, "test": test, "group": group, "settings": settings, **roles}
    found = examine(*data, job=job, quiet=as_json, **given)
    if as_json:
        cleaned = found.fix(fix).as_values() if fix is not None else None
        print_json(found.as_values() | {"cleaned": cleaned})
    else:
        show(found)
        if fix is not None:
            show_copy(found.fix(fix))
    if any(finding.severity == "error" for finding in found.findings):
        raise typer.Exit(1)


def show(found: "Examination") -> None:
    """Findings, the worst first, then numbers."""
    from glassformer.cli.results import print_table

    for file, roles in found.columns.items():
        encoding = f", {found.encodings[file]}" if file in found.encodings else ""
        said = ", ".join(f"{role} = {column!r}" for role, column in roles.items())
        say(f"{file}: {said}{encoding}")
    parts = ", ".join(f"{count:,} {part}" for part, count in found.rows.items())
    say(f"for {found.job}, {parts or 'no'} rows")
    for finding in found.findings:
        show_finding(finding)
    if not found.alarms:
        say(found.verdict, style="green")
    for title, table in found.figures.items():
        if table:
            print_table(bars(title, table))


def show_finding(finding: "Finding") -> None:
    """What it is in one line, then what to do, then the rows."""
    rest = finding.count - len(finding.rows)
    more = f" and {rest:,} more" if rest > 0 and finding.rows else ""
    say(f"{finding.severity}: {finding.what}", style=COLOURS[finding.severity])
    say(f"    {finding.advice}")
    if finding.rows:
        say(f"    {listed_by_file(finding.rows)}{more}", style="dim")


def listed_by_file(rows: Sequence[str]) -> str:
    """Rows, with the name of a file before the first of its own.

    >>> listed_by_file(["a.csv row 3", "a.csv row 5", "b.csv row 1", "b.csv line 7"])
    'a.csv row 3, row 5, b.csv row 1, line 7'
    """
    said, last = [], ""
    for row in rows:
        file, kind, number = row.rsplit(" ", 2)
        said.append(f"{kind} {number}" if file == last else row)
        last = file
    return ", ".join(said)


def show_copy(cleaned: "Cleaned") -> None:
    """What a cleaned copy holds, and what it does not."""
    from glassformer.data.doctor.finding import counted

    for copy, original in cleaned.files.items():
        say(f"wrote {copy} in UTF-8, from {original}")
    for reason, count in cleaned.dropped.items():
        say(f"left out: {counted(count, 'row')}, {reason}")
    say(f"kept: {counted(cleaned.kept, 'row')}")


def bars(title: str, table: Mapping[str, int]) -> "Table":
    """Numbers with a bar each, the first of many."""
    from rich import box
    from rich.table import Table

    shown = Table(title=title, title_justify="left", box=box.SIMPLE, show_header=False)
    shown.add_column()
    shown.add_column(justify="right")
    shown.add_column(style="cyan")
    largest = max(table.values()) or 1
    for name, value in list(table.items())[:SHOWN]:
        bar = "█" * max(1, round(WIDEST * value / largest)) if value else ""
        shown.add_row(name[:40], f"{value:,}", bar)
    if len(table) > SHOWN:
        shown.add_row(f"and {len(table) - SHOWN:,} more", "", "")
    return shown


def say(line: str, *, style: str = "") -> None:
    """One line on standard output, whatever stands in it."""
    Terminal().say(line, style=style)
