"""Run commands in a terminal, one after the other, and draw what they show, as an SVG.

    python examples/record_terminal.py demo.svg \
        11 "glassformer train classify names.csv --time 2m --quiet" \
        2 "glassformer predict runs/names Wrocław --confidence" \
        7 "glassformer explain runs/names Wrocław"

draws the first 11 lines of the first command, and so on; dots stand for the rest. Bars that were
overwritten are left out.
"""

import io
import os
import pty
import re
import shlex
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

COLUMNS = 100
MOVES = re.compile(r"\x1b\[(?:\?25[lh]|\d*[A-HJK])")  # of the cursor, which draw bars
BAR = re.compile("(?<![┏┳┡╇━])━")  # and no border of a table
FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)  # that would be fetched


def shown_by(command: list[str]) -> str:
    """What a command prints in a terminal of COLUMNS; it is shown here, too."""
    printed = io.BytesIO()

    def read(terminal: int) -> bytes:
        data = os.read(terminal, 1 << 16)
        printed.write(data)
        return data

    os.environ |= {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    if status := pty.spawn(command, read):
        sys.exit(os.waitstatus_to_exitcode(status))
    return printed.getvalue().decode("utf-8", errors="replace")


def first_lines(shown: str, count: int) -> list[str]:
    """The first lines, without what was overwritten, and dots if there are more."""
    lines = [MOVES.sub("", line).rpartition("\r")[2] for line in shown.strip().split("\r\n")]
    lines = [line for line in lines if not BAR.search(line)]
    return lines[:count] + ["⋮"] * (len(lines) > count)


def main() -> None:
    """Run the commands, and draw."""
    path, *arguments = sys.argv[1:]
    lines: list[str] = []
    for count, command in zip(arguments[::2], arguments[1::2], strict=True):
        lines += [
            f"\x1b[1m$ {command}\x1b[0m",
            *first_lines(shown_by(shlex.split(command)), int(count)),
            "",
        ]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="truecolor")
    console.print(Text.from_ansi("\n".join(lines[:-1])))
    bare = FONTS.sub("", CONSOLE_SVG_FORMAT)
    picture = console.export_svg(title="glassformer", code_format=bare)
    Path(path).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
