"""What reaches a terminal is shown and never obeyed, by whichever path it comes."""

import ast
import io
import json

import pytest
from rich.progress import Progress, TextColumn
from rich.table import Table
from rich.text import Text
from test_architecture import ROOT, SOURCE, sources, tree_of

from glassformer.terminal import Terminal, print_json, print_line, print_piece, printable

COMMANDS = "\x1b[2J\x1b]0;title\x07\x9b31m\r\b\x7f\u202e\ud800"
SHOWN = "\\x1b[2J\\x1b]0;title\\x07\\x9b31m\\x0d\\x08\\x7f\\x202e\\xd800"


@pytest.fixture
def paper():
    return io.StringIO()


def test_a_line_shows_commands_and_keeps_its_cells_apart(capsys):
    print_line(COMMANDS, "長い 😀", "two\nlines")
    print_line(COMMANDS, stderr=True)
    assert capsys.readouterr() == (f"{SHOWN}\t長い 😀\ttwo\\x0alines\n", f"{SHOWN}\n")


def test_a_text_keeps_its_tabs_its_wide_spaces_and_its_joiners(capsys):
    text = "\u3000\u3000白日依山尽\tمی\u200cروم 👩\u200d👩\u00a0"
    print_line(text)
    print_piece(f"a:\n\t{text}")
    assert capsys.readouterr().out == f"{text}\na:\n\t{text}"


def test_json_holds_the_same_values_without_commands(capsys):
    values = {"長い": ["tab\t, tag \U000e0001", COMMANDS, 7], COMMANDS: {}}
    for indent in (None, 2):
        print_json(values, indent=indent)
        out = capsys.readouterr().out
        assert all(line.isprintable() for line in out.splitlines())
        assert json.loads(out) == values
        assert "長い" in out


@pytest.mark.parametrize("terminal", [True, False])
def test_drawn_text_is_taken_as_it_is(terminal, paper):
    console = Terminal(file=paper, force_terminal=terminal, width=200, color_system=None)
    plain = "[bold]:cat: 3[/none] "
    table = Table("a", plain + COMMANDS, title=COMMANDS)
    table.add_row(plain + COMMANDS, Text(COMMANDS))
    console.print(table)
    console.say(plain + COMMANDS + "\nx")
    console.print(COMMANDS, Text(COMMANDS), style="bold")
    out = paper.getvalue()
    assert all(line.isprintable() for line in out.split("\n"))
    assert f"│ {plain}{SHOWN} │" in out  # as wide as it is
    assert f"\n{plain}{SHOWN}\\x0ax\n" in out


def test_a_bar_moves_while_what_it_says_does_not(paper):
    console = Terminal(file=paper, force_terminal=True, width=100, color_system=None)
    with Progress(TextColumn("{task.description}"), console=console) as progress:
        progress.add_task("one \x9b7A")
        progress.add_task("two")
    assert "\x1b[1A" in paper.getvalue()
    assert "\x9b" not in paper.getvalue()


def test_plain_text_stays_as_it_is():
    assert printable("naïve [x] 長い 😀") == "naïve [x] 長い 😀"


# No other path


def ways_to_a_terminal(tree):
    """What writes to a terminal by itself; a bar does where it is not given a console of ours."""
    bars = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("rich.progress", "rich.live")
        for alias in node.names
        if alias.name in ("Progress", "Live", "track")
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name("print" | "Console" as name)):
                yield name
            case ast.Call(ast.Name(name), keywords=keywords) if name in bars:
                if not any(keyword.arg == "console" for keyword in keywords):
                    yield name
            case ast.Attribute(ast.Name("rich"), "print" | "print_json" | "inspect" as name):
                yield f"rich.{name}"
            case ast.Attribute(ast.Name("typer" | "click"), "echo" | "secho" as name):
                yield name
            case ast.Attribute(
                ast.Attribute(ast.Name("sys"), "stdout" | "stderr" as stream),
                "write" | "writelines" | "buffer",
            ):
                yield f"sys.{stream}"
            case ast.ImportFrom("rich" | "rich.console", names):
                yield from {"print", "Console"} & {alias.name for alias in names}


def test_every_path_to_a_terminal_goes_through_one_file():
    found = {
        str(path.relative_to(ROOT)): ways
        for path in sources(SOURCE)
        if path != SOURCE / "terminal.py" and (ways := list(ways_to_a_terminal(tree_of(path))))
    }
    assert not found


@pytest.mark.parametrize(
    "line",
    [
        "print(text)",
        "from rich.console import Console",
        "Console().print(text)",
        "from rich import print",
        "rich.print(text)",
        "typer.echo(text)",
        "sys.stdout.write(text)",
        "sys.stderr.buffer.write(text)",
        "from rich.progress import Progress\nProgress(transient=True)",
    ],
)
def test_another_path_to_a_terminal_is_found(line):
    assert list(ways_to_a_terminal(ast.parse(line)))


def test_a_bar_on_our_terminal_is_no_other_path():
    lines = (
        "from rich.progress import Progress",
        "Progress(console=Terminal())",
        "Terminal().print(table)",
        "sys.stdout.flush()",
    )
    assert not list(ways_to_a_terminal(ast.parse("\n".join(lines))))
