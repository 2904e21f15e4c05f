"""`glassformer data`: the named data sets."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glassformer.cli.options import AsJson
from glassformer.terminal import Terminal, print_json, print_line

if TYPE_CHECKING:
    from glassformer.data.catalog import Entry

app = typer.Typer(no_args_is_help=True, help="List, show and download named data sets.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set; see `data list`.")]

FIRST = 3  # rows shown
WIDTH = 70  # characters of a value shown


@app.command("list")
def list_sets(as_json: AsJson = False) -> None:
    """List the named data sets and where they are stored.

    Example: glassformer data list
    """
    from rich.table import Table

    from glassformer.cli.results import print_table
    from glassformer.data.catalog import CATALOG

    if as_json:
        print_json({"sets": [described(entry) for entry in CATALOG.values()]})
        return
    table = Table("set", "what", "licence", "here")
    for entry in CATALOG.values():
        table.add_row(entry.name, entry.what, entry.licence, place(entry) or "no")
    print_table(table)


@app.command("show")
def show(name: Name, as_json: AsJson = False) -> None:
    """Show what is known about a data set, and its first rows if it is available.

    Example: glassformer data show trec
    """
    from glassformer.data.catalog import family, open_entry
    from glassformer.data.catalog.checking import count, verdict

    entry = open_entry(name)
    values = described(entry)
    if values["here"] is not None:
        found = count(entry.rows())
        values |= {"rows": dict(found.counts), "verdict": verdict(entry.name, found)}
        values["first"] = [dict(row.values) for row in islice(entry.rows(), FIRST)]
    if as_json:
        print_json(values)
        return
    for key in ("name", "what", "licence", "source", "group", "here"):
        print_line(f"{key:8}  {values[key] or 'no'}")
    if others := family(name):
        print_line(f"sets      {', '.join(others)}")
    print_line(f"recorded  {by_split(values['recorded'])}")
    for file in values["files"]:
        print_line(f"file      {file['url']}: {checked(file)}")
    if "rows" in values:
        print_line(f"rows      {by_split(values['rows'])}: {values['verdict']}")
    for row in values.get("first", ()):
        shown = ", ".join(f"{column} = {str(value)[:WIDTH]!r}" for column, value in row.items())
        print_line(f"row       {shown}")


@app.command("fetch")
def fetch(name: Name, as_json: AsJson = False) -> None:
    """Find a data set locally, or download it, and verify it.

    Example: glassformer data fetch trec
    """
    from glassformer.data.catalog import open_entry
    from glassformer.data.catalog.checking import count, verdict
    from glassformer.data.catalog.fetching import fetch as fetch_set

    entry = open_entry(name)
    console = Terminal(stderr=True)
    with progress(console) as seen:
        done = fetch_set(entry, seen)
    if done.unchecked:
        more = f" and {len(done.unchecked) - 1} more" if len(done.unchecked) > 1 else ""
        line = f"{done.unchecked[0]}{more}: downloaded without verification, no checksum is known"
        console.say(line)
    found = count(entry.rows())
    console.say(f"{name}: {verdict(entry.name, found)}")
    folder = None if done.folder is None else str(done.folder)
    if as_json:
        print_json({"name": name, "folder": folder, "rows": dict(found.counts)})
    else:
        print_line(folder or "on board")


def described(entry: "Entry") -> dict[str, Any]:
    """The catalog entry as plain values."""
    from glassformer.data.catalog.checking import RECORDED

    known = RECORDED.get(entry.name)
    return {
        "name": entry.name,
        "what": entry.what,
        "licence": entry.licence,
        "source": entry.source,
        "group": entry.group,
        "here": place(entry),
        "recorded": dict(known.counts) if known else {},
        "files": [asdict(remote) for remote in entry.storage.remotes] if entry.storage else [],
    }


def place(entry: "Entry") -> str | None:
    """The folder of a set, or "on board"; None if it is not available."""
    if entry.storage is None:
        return "on board"
    found = entry.storage.search()
    return None if found is None else str(next(iter(found.values())).parent)


def by_split(counts: Mapping[str, int]) -> str:
    """Row counts by split, in words."""
    return ", ".join(f"{rows:,} {split or 'to be split'}" for split, rows in counts.items()) or "no"


def checked(file: Mapping[str, Any]) -> str:
    """The checksum of a download, and whether it was verified."""
    if file["checksum"] is None:
        return "no checksum known"
    return f"{file['checksum']} ({'verified' if file['verified'] else 'published, not verified'})"


@contextmanager
def progress(console: Terminal) -> Iterator[Callable[[str, int, int | None], None]]:
    """A progress bar per file, shown only in a terminal."""
    if not console.is_terminal:
        yield lambda name, have, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=console, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def seen(name: str, have: int, total: int | None) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=have, total=total)

        yield seen
