"""Run a command in a terminal and draw what it shows last, as an SVG.

    python examples/record_terminal.py docs/pictures/demo.svg 40 glassformer demo

draws the last 40 lines. Bars that were overwritten are not among them.
"""

import io
import os
import pty
import re
import sys
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

COLUMNS = 112
MOVES = re.compile(r"\x1b\[(?:\?25[lh]|\d*[A-HJK])")  # of the cursor, which draw bars
FONTS = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)  # that would be fetched


def shown_by(command: list[str]) -> str:
    """What a command prints in a terminal of COLUMNS; it is shown here, too."""
    heard = io.BytesIO()

    def read(terminal: int) -> bytes:
        data = os.read(terminal, 1 << 16)
        heard.write(data)
        return data

    os.environ |= {"COLUMNS": str(COLUMNS), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    if status := pty.spawn(command, read):
        sys.exit(os.waitstatus_to_exitcode(status))
    return heard.getvalue().decode("utf-8", errors="replace")


def last_lines(shown: str, count: int) -> str:
    """The last lines, without what was overwritten."""
    lines = (MOVES.sub("", line).rpartition("\r")[2] for line in shown.split("\r\n"))
    return "\n".join([line for line in lines if "━" not in line][-count:])


def main() -> None:
    """Run the command, and draw."""
    path, count, *command = sys.argv[1:]
    lines = last_lines(shown_by(command), int(count))
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.from_ansi(lines))
    bare = FONTS.sub("", CONSOLE_SVG_FORMAT)
    picture = console.export_svg(title=" ".join(command), code_format=bare)
    Path(path).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
