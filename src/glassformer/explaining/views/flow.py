"""Texts that follow one another in a terminal, none of them broken while it fits into a line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import ConsoleOptions
from rich.measure import Measurement
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Flow:
    """Texts that rich can draw in lines; blanks and separators belong to the one before them."""

    parts: Sequence[Text]

    def __rich_console__(self, console: Any, options: ConsoleOptions) -> Iterator[Text]:
        lines = [Text()]
        for part in self.parts:
            first, *rest = part.split("\n", allow_blank=True)
            if lines[-1] and lines[-1].cell_len + width_of(first) > options.max_width:
                lines.append(Text())
            lines[-1].append_text(first)
            lines += rest
        yield Text("\n", overflow="fold").join(lines)

    def __rich_measure__(self, console: Any, options: ConsoleOptions) -> Measurement:
        widths = [width_of(part) for part in self.parts]
        whole = sum(part.cell_len for part in self.parts[:-1]) + sum(widths[-1:])
        return Measurement(max(widths, default=0), whole).with_maximum(options.max_width)


def width_of(part: Text) -> int:
    """The cells of a text, without blanks at its end."""
    shown = part.copy()
    shown.rstrip()
    return shown.cell_len


def listed(parts: Sequence[Text]) -> list[Text]:
    """Parts of a flow with commas between them."""
    return [*(part + Text(", ") for part in parts[:-1]), *parts[-1:]]
