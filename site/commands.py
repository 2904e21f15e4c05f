"""docs/reference/commands.md: every command and its options, from the command line itself."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from typer.main import get_command

from glassformer.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"


def commands_page() -> str:
    """Every command as `--help` describes it."""
    what = "What `glassformer COMMAND --help` prints, on one page. `make docs` writes it.\n"
    return "\n".join(["# Every command\n", what, *sections(get_command(app), "glassformer")])


def sections(command: Any, name: str) -> Iterator[str]:
    """A section for a command, and one for each below it."""
    if name != "glassformer":
        yield section(command, name)
    for word, other in getattr(command, "commands", {}).items():
        if not other.hidden:
            yield from sections(other, f"{name} {word}")


def section(command: Any, name: str) -> str:
    """What a command does, its arguments and its options."""
    usage = " ".join([name, *command.collect_usage_pieces(click.Context(command))])
    rows = [row for parameter in command.params if (row := described(parameter))]
    table = ["| option | what it does |", "|---|---|", *rows, ""] if rows else []
    return "\n".join([f"## {name}\n", f"{plain(command.help)}\n", f"    {usage}\n", *table])


def described(parameter: Any) -> str | None:
    """An option as a row of a table; None if it is hidden or has no description."""
    text = getattr(parameter, "help", None)
    if text is None or getattr(parameter, "hidden", False):
        return None
    names = parameter.opts if parameter.param_type_name == "option" else [parameter.name.upper()]
    shown = ", ".join(f"`{name}`" for name in (*names, *parameter.secondary_opts))
    paragraphs = [" ".join(paragraph.split()) for paragraph in plain(text).split("\n\n")]
    return f"| {shown} | {'<br>'.join(paragraphs)} |"


def plain(text: str | None) -> str:
    """A description without marks for the layout of a terminal."""
    return (text or "").replace("\b", "").replace("|", "\\|").strip()
