"""An explanation: what a prediction is based on, which shows itself in every way there is.

print(found)                what the command line prints, without colours
found                       in a notebook, the page
found.save("why.png")       a file: a page, a picture or JSON
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glassformer.explaining.record import ExplanationRecord
from glassformer.explaining.views.document import packed_record, page_of
from glassformer.explaining.views.output import write_explanation
from glassformer.explaining.views.page import framed
from glassformer.explaining.views.terminal import ExplanationView
from glassformer.explaining.views.wording import method_name
from glassformer.terminal import drawn


@dataclass(frozen=True, kw_only=True, eq=False, slots=True, repr=False)
class Explanation(ExplanationRecord):
    """What one prediction is based on.

    Wherever `layer` and `head` are given, they choose the attention that is shown, as
    `views.selection.select` takes them.
    """

    def __repr__(self) -> str:
        """The prediction and its method in one line."""
        first = max(self.targets, key=lambda target: target.probability, default=None)
        sure = "" if first is None or self.written else f" ({first.probability:.2f})"
        what = f"no answer, {self.reason}; guess: " if self.reason else ""
        return f"<Explanation of {what}{self.answer!r}{sure} by {method_name(self.method)}>"

    def __str__(self) -> str:
        """What the command line prints, without colours."""
        return drawn(ExplanationView(explanation=self))

    def _repr_html_(self) -> str:
        """The page in a frame, for notebooks."""
        return framed(self.as_page())

    def save(self, path: str | Path, *, layer: str | None = None, head: int | None = None) -> None:
        """Write a page (.html), a picture (.png, .svg, .pdf) or all numbers (.json)."""
        write_explanation(self, Path(path), layer=layer, head=head)

    def as_page(self, *, layer: str | None = None, head: int | None = None) -> str:
        """One self-contained HTML file."""
        return page_of(self, layer=layer, head=head)

    def as_packed(self) -> dict[str, Any]:
        """Plain values with packed numbers, which a page draws."""
        return packed_record(self)
