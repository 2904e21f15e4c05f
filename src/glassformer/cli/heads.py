"""The heads of a run on the command line: where they look, ablated, pruned."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from glassformer.errors import GlassformerError
from glassformer.terminal import Terminal, print_json

if TYPE_CHECKING:
    from glassformer.explaining.heads import HeadProfile
    from glassformer.metrics.paired import Comparison
    from glassformer.runs.heads import Ablations, HeadsFound, Pruned
    from glassformer.runs.run import Run


def study_heads(
    run: "Run",
    data: Sequence[str],
    *,
    heads: bool,
    ablate: Sequence[str],
    prune: bool,
    as_json: bool,
) -> None:
    """Show one of these studies of the heads of a run."""
    from glassformer.runs.display import Display

    if heads + bool(ablate) + prune > 1:
        raise GlassformerError("--heads, --ablate and --prune are separate studies; give one")
    if heads:
        with Display().counting("rows") as progress:
            found = run.heads.look(*data, progress=progress)
        print_json(found.as_values()) if as_json else show_heads(found)
    elif ablate:
        with Display().counting("ablations") as progress:
            without = run.heads.ablate(*ablate, data=list(data) or None, progress=progress)
        print_json(without.as_values()) if as_json else show_ablations(without)
    else:
        with Display().counting("steps") as progress:
            pruned = run.heads.prune(*data, progress=progress)
        print_json(pruned.as_values()) if as_json else show_pruned(pruned)


def show_heads(found: "HeadsFound") -> None:
    """One line per head: its name, and where its weight goes."""
    from glassformer.cli.results import print_table
    from glassformer.explaining.heads import PLACES

    there = [place for place in PLACES if any(place in one.shares for one in found.heads.values())]
    table = Table("head", "looks at", "entropy", "distance", *there)
    table.title = f"Where attention goes, on {found.rows:,} rows"
    for column in table.columns[2:]:
        column.justify = "right"
    for label, one in found.heads.items():
        table.add_row(label, one.kind, f"{one.entropy:.2f}", _distance(one), *_shares(one, there))
    print_table(table)
    kinds = Counter(one.kind for one in found.heads.values() if one.kind)
    named = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    several = len(found.heads)
    Terminal().say(f"{kinds.total()} of {several} heads have a name{': ' if named else ''}{named}")


def show_ablations(found: "Ablations") -> None:
    """One line for each thing left out: the difference that it makes."""
    from glassformer.cli.results import print_table
    from glassformer.reports.wording import named

    Terminal().say(_whole(found))
    table = Table("without", f"change of {named(found.goal)}", "p", "rows better", "worse")
    for name, comparison in found.without.items():
        table.add_row(_described(name), *_difference(found.goal, comparison))
    print_table(table)


def show_pruned(found: "Pruned") -> None:
    """One line for each step, and how many heads can go."""
    from glassformer.cli.results import print_table
    from glassformer.reports.wording import named, written

    removed, console = found.removed, Terminal()
    console.say(_whole(found))
    table = Table(
        "heads removed", f"change of {named(found.goal)}", "p", "rows better", "worse", ""
    )
    for step in found.steps:
        falls = "falls" if step.fell else ""
        table.add_row(str(len(step.removed)), *_difference(found.goal, step.comparison), falls)
    print_table(table)
    allowed = written(found.goal, found.tolerance)
    console.say(
        f"{len(removed)} of {found.heads} heads can go together before {named(found.goal)} becomes "
        f"significantly worse, or worse by more than {allowed}"
    )
    if removed:
        console.say(f"The least important first: {', '.join(removed)}")


def _whole(found: "Ablations | Pruned") -> str:
    from glassformer.reports.wording import named, written

    value, low, high = (
        written(found.goal, end) for end in (found.whole.value, found.whole.low, found.whole.high)
    )
    better = "higher" if found.higher_is_better else "lower"
    return (
        f"With all heads, on {found.rows:,} rows: {named(found.goal)} {value} [{low}, {high}]; "
        f"{better} is better"
    )


def _described(label: str) -> str:
    """What is left out; heads have two numbers, layers one."""
    kinds = ["head" if len(re.findall(r"\d+", one)) > 1 else "layer" for one in label.split(",")]
    if len(kinds) == 1:
        return (
            f"all of {label}"
            if label.startswith("cross.") and kinds == ["layer"]
            else (f"{kinds[0]} {label}")
        )
    return f"{kinds[0]}s {label}" if len(set(kinds)) == 1 else label


def _difference(goal: str, found: "Comparison") -> tuple[str, str, str, str]:
    from glassformer.reports.wording import p_value, written

    gap = found.difference
    value, low, high = (written(goal, end, "+") for end in (gap.value, gap.low, gap.high))
    return (
        f"{value} [{low}, {high}]",
        p_value(found.p_value),
        f"{found.wins:,}",
        f"{found.losses:,}",
    )


def _distance(one: "HeadProfile") -> str:
    return "" if one.distance is None else f"{one.distance:.1f}"


def _shares(one: "HeadProfile", places: Sequence[str]) -> list[str]:
    return [f"{one.shares[place]:.0%}" if place in one.shares else "" for place in places]
