"""`glassformer doctor`: problems in the data, by row, before training."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.options import AsJson, Columns, Files, Group, Header, Settings, Test, Valid
from glassformer.tasks import JOBS
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from rich.table import Table

    from glassformer.data.doctor.check import Finding
    from glassformer.data.doctor.cleaning import Cleaned
    from glassformer.data.doctor.examination import Examination

COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}
WIDEST = 30  # characters of a bar
SHOWN = 20  # lines of a table


def doctor(
    data: Files,
    job: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(JOBS)}; default: guessed from the data.")
    ] = None,
    valid: Valid = [],  # noqa: B006
    test: Test = [],  # noqa: B006
    columns: Columns = "",
    header: Header = None,
    group: Group = None,
    settings: Settings = [],  # noqa: B006
    fix: Annotated[
        Path | None, typer.Option(metavar="OUT", help="Write a cleaned copy to this path.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Examine data before training: what is wrong, in which rows, and how to fix it.

    Exits with 1 if it finds an error, with --fix if one is left in the copy, and with 0 for
    warnings and notes.

    Example: glassformer doctor reviews.csv --fix clean.csv
    """
    from glassformer.data.columns import parse_columns
    from glassformer.runs.doctor import doctor as examine

    named = parse_columns(columns) if columns else {}
    given: dict[str, Any] = {"valid": valid, "test": test, "columns": named}
    given |= {"header": header, "group": group, "set": settings}
    found = left = examine(*data, job=job, quiet=as_json, **given)
    cleaned = None
    if not as_json:
        show(found)
    if fix is not None:
        cleaned = found.fix(fix)
        if not as_json:
            show_copy(cleaned)
        data = cleaned.copies_of(data)
        left = examine(*data, job=found.job, quiet=True, **for_copy(cleaned, given))
    errors = [finding for finding in left.findings if finding.severity == "error"]
    if as_json:
        copy = cleaned and cleaned.as_values() | {"errors": [one.as_values() for one in errors]}
        print_json(found.as_values() | {"cleaned": copy})
    elif fix is not None:
        show_left(left, errors)
    if errors:
        raise typer.Exit(1)


def for_copy(cleaned: "Cleaned", given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with which a cleaned copy is examined.

    It is in UTF-8, and a table names columns that had only numbers.
    """
    tables = not any(copy.endswith(".jsonl") for copy in cleaned.files)
    columns = given["columns"].items()
    return {
        "valid": cleaned.copies_of(given["valid"]),
        "test": cleaned.copies_of(given["test"]),
        "columns": {role: name for role, name in columns if not (tables and name.isdigit())},
        "header": "yes" if tables and given["header"] else None,
        "group": given["group"],
        "set": [one for one in given["set"] if not one.startswith("data.encoding=")],
    }


def show_left(found: "Examination", errors: "Sequence[Finding]") -> None:
    """Print the errors that are left in a cleaned copy, or that none is."""
    for finding in errors:
        show_finding(finding)
    if errors:
        say("These errors are left in the copy: correct them by hand.", style="bold red")
    else:
        say(found.verdict or "No errors are left in the copy, only warnings.", style="green")


def show(found: "Examination") -> None:
    """Print the findings, worst first, then the figures."""
    from glassformer.cli.results import print_table
    from glassformer.data.columns import columns_line

    for file, roles in found.columns.items():
        encoding = f"; {found.encodings[file]}" if file in found.encodings else ""
        columns = columns_line(roles, found.headers.get(file), found.unread.get(file, ()))
        say(f"{file}: {columns}{encoding}")
    say(f"for {found.job}, {found.counts}")
    for guess in found.guesses:
        say(guess)
    for finding in found.findings:
        show_finding(finding)
    if not found.alarms:
        say(found.verdict, style="green")
    for title, table in found.figures.items():
        if table:
            print_table(bars(title, table))


def show_finding(finding: "Finding") -> None:
    """Print what is wrong, what to do, and the rows."""
    rest = finding.count - len(finding.rows)
    more = f" and {rest:,} more" if rest > 0 and finding.rows else ""
    say(f"{finding.severity}: {finding.what}", style=COLOURS[finding.severity])
    say(f"    {finding.advice}")
    if finding.rows:
        say(f"    {listed_by_file(finding.rows)}{more}", style="dim")


def listed_by_file(rows: Sequence[str]) -> str:
    """Row locations, each file named once.

    >>> listed_by_file(["a.csv row 3 (line 4)", "a.csv row 5", "b.csv row 1", "b.csv line 7"])
    'a.csv row 3 (line 4), row 5, b.csv row 1, line 7'
    """
    places, last = [], ""
    for row in rows:
        found = re.fullmatch(r"(.*) ((?:row|line) \d+(?: \(line \d+\))?)", row, re.DOTALL)
        file, place = found.groups() if found else (row, row)
        places.append(place if file == last else row)
        last = file
    return ", ".join(places)


def show_copy(cleaned: "Cleaned") -> None:
    """Print what a cleaned copy kept, what it dropped, and what it changed."""
    from glassformer.wording import counted

    *lines, kept = cleaned.lines
    for line in lines:
        say(line)
    for change in cleaned.changes[:SHOWN]:
        say(f"    {change.where}: {change.what}", style="dim")
    if more := len(cleaned.changes[SHOWN:]):
        say(f"    and {counted(more, 'more change')}; --json lists all", style="dim")
    say(kept)


def bars(title: str, table: Mapping[str, int | float]) -> "Table":
    """A table of numbers with bars; only the first rows of a long one."""
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
    """Print one line on standard output, control characters escaped."""
    Terminal().say(line, style=style)
