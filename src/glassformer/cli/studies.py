"""Studies of a run on the command line: its heads, and explanations of many rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from glassformer.errors import GlassformerError
from glassformer.terminal import Terminal, print_json, print_line

if TYPE_CHECKING:
    from glassformer.runs.run import Run
    from glassformer.runs.study import StudyResult

NUMBER = re.compile(r"[<\d.,% ]*")


@dataclass(frozen=True, kw_only=True, slots=True)
class Studies:
    """What is studied of a run: at most one of these."""

    summary: bool = False
    faithfulness: bool = False
    heads: bool = False
    ablate: Sequence[str] = ()
    prune: bool = False

    @property
    def chosen(self) -> list[str]:
        """The names of those that were asked for."""
        return [f"--{name}" for name in self.__slots__ if getattr(self, name)]

    def refuse_several(self) -> None:
        """Refuse more than one at once."""
        if len(self.chosen) > 1:
            first, second, *_ = self.chosen
            raise GlassformerError(f"{first} and {second} are separate studies; give one of them")

    def refuse_idle(self, options: Mapping[str, object]) -> None:
        """Refuse options that explain a single prediction."""
        for name, value in options.items():
            if value not in (None, [], 0):
                raise GlassformerError(
                    f"--{name} is for explaining an input; leave it out with {self.chosen[0]}"
                )

    def results(self, run: "Run", data: Sequence[str], method: str | None) -> "list[StudyResult]":
        """What is found out."""
        from glassformer.explaining.watching import attention_layers
        from glassformer.runs.display import Display

        if self.faithfulness:
            return [run.explainer.measure(*data)]
        found: list[StudyResult] = []
        if self.summary:
            found.append(run.explainer.summary(*data, method=method))
        if self.heads or (self.summary and attention_layers(run.model)):
            with Display().bar("reading rows") as progress:
                found.append(run.heads.look(*data, progress=progress))
        elif self.ablate:
            with Display().bar("ablations") as progress:
                rows = list(data) or None
                found.append(run.heads.ablate(*self.ablate, data=rows, progress=progress))
        elif self.prune:
            with Display().bar("pruned heads") as progress:
                found.append(run.heads.prune(*data, progress=progress))
        return found


def show_study(
    studies: Studies,
    run: "Run",
    data: Sequence[str],
    *,
    method: str | None = None,
    out: Path | None = None,
    as_json: bool = False,
) -> None:
    """Do a study, and show its results or write them to a file."""
    from glassformer.runs.study import study_values, write_study

    found = studies.results(run, data, method)
    if out is not None:
        write_study(found, out, title=f"{run.folder.path.name}: {studies.chosen[0][2:]}")
        print_line(f"wrote {out}", stderr=True)
    if as_json:
        print_json(study_values(found))
    elif out is None:
        for one in found:
            show_result(one)


def show_result(found: "StudyResult") -> None:
    """The table of a result between its title and its sentences."""
    from glassformer.cli.results import print_table

    console, table, lines = Terminal(), Table(*found.header), found.lines()
    for line in lines:
        table.add_row(*line)
    console.say(found.title)
    if lines:
        for column, *cells in zip(table.columns, *lines, strict=True):
            if column is not table.columns[0] and all(map(NUMBER.fullmatch, cells)):
                column.justify = "right"
        print_table(table)
    for sentence in found.sentences():
        console.say(sentence)
