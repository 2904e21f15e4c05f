"""The only way to a terminal. Text from files is shown there, and never obeyed.

`print_line` and `print_json` write plain lines, `Terminal` draws tables and bars; all go through
`printable`. Nothing else in the package prints, and a test holds that.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Any
from unicodedata import category

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from glassformer.files import to_json

# Soft hyphens, joiners, marks of direction.
JOINING = frozenset("\u00ad\u200c\u200d\u200e\u200f")


def printable(text: str) -> str:
    r"""Without line breaks and what a terminal would obey, whatever a file or column is called.

    >>> printable("a\tb")
    'a\\x09b'
    """
    if text.isprintable():
        return text
    return "".join(c if is_harmless(c) else f"\\x{ord(c):02x}" for c in text)


def is_harmless(character: str) -> bool:
    """Whether a terminal only shows it, or joins or parts the letters beside it."""
    return character.isprintable() or character in JOINING or category(character) == "Zs"


def aligned(rows: Iterable[Sequence[str]]) -> str:
    """Rows of cells as lines whose columns line up, wide characters included.

    >>> print(aligned([("morning", "早上", "0.87"), ("Good", "好", "0.9")]))
    morning  早上  0.87
    Good     好    0.9
    """
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip_longest(*shown, fillvalue="")]
    lines = (
        "  ".join(set_cell_size(cell, width) for cell, width in zip(row, widths, strict=False))
        for row in shown
    )
    return "\n".join(line.rstrip() for line in lines)


def printable_lines(text: str) -> str:
    """The same with its line breaks."""
    return "\n".join(map(printable, text.split("\n")))


def print_line(*cells: str, stderr: bool = False, flush: bool = True) -> None:
    """One line, at once unless more follow; a tab stands between its cells.

    A single cell on standard output is a text, which keeps its own tabs.
    """
    stream = sys.stderr if stderr else sys.stdout
    parts = cells[0].split("\t") if len(cells) == 1 and not stderr else cells
    stream.write("\t".join(map(printable, parts)) + "\n")  # `print` would write twice
    if flush:
        stream.flush()


def print_piece(text: str) -> None:
    """A piece of a text, at once, with line breaks and tabs; `print_line` ends the last line."""
    print("\t".join(map(printable_lines, text.split("\t"))), end="", flush=True)


def print_json(
    values: Mapping[str, Any] | Sequence[Any], *, indent: int | None = 2, flush: bool = True
) -> None:
    """One JSON value on standard output, where what a terminal would obey is escaped as in JSON."""
    lines = to_json(values, indent=indent).split("\n")
    print("\n".join(map(_escaped, lines)), flush=flush)


def _escaped(line: str) -> str:
    if line.isprintable():
        return line
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)


class Terminal(Console):
    """A console of rich that takes text as it is: no markup, no emoji codes, no control codes.

    Args:
        options: What else `rich.console.Console` is given.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"highlight": False, "markup": False, "emoji": False, **options})

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable_lines(text), **options)  # as wide as it will be shown

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:  # rich's own, which moves the cursor of a bar
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)

    def say(self, line: str, *, style: str = "") -> None:
        """One line, however long, whatever stands in it."""
        self.print(printable(line), style=style, soft_wrap=True)


def drawn(what: RenderableType) -> str:
    """What a console would print, without colours."""
    console = Terminal(color_system=None, force_jupyter=False)
    with console.capture() as captured:
        console.print(what)
    return captured.get().rstrip("\n")
