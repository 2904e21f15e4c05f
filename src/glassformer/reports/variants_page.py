"""The page of a comparison: scores, differences, curves, lengths and costs, each with a picture."""

from collections.abc import Callable, Iterator
from pathlib import Path

from glassformer.files import write_json, write_text
from glassformer.metrics.intervals import Score
from glassformer.reports import charts
from glassformer.reports.markup import escaped
from glassformer.reports.page import (
    document,
    facts,
    heading,
    keyed_figure,
    notes,
    score_table,
    section,
)
from glassformer.reports.variants import VariantComparison, VariantResult, shortened
from glassformer.reports.wording import difference, named, p_value, style_in, written

NAME = "comparison"  # of the files


def variants_page(found: VariantComparison) -> str:
    """The HTML file."""
    scores = {one.name: one.scores for one in found.variants}
    return document(
        found.title,
        [
            facts(found.facts),
            f"<section><p><strong>{escaped(found.verdict())}</strong></p></section>",
            score_table(scores, found.best.name),
            differences(found),
            *curves(found),
            lengths(found),
            costs(found),
            notes(found.notes),
        ],
    )


def differences(found: VariantComparison) -> str:
    """The difference of each variant from the best, with its interval."""
    others = [one for one in found.variants if one.difference is not None]
    ends = [end for one in others if (gap := one.difference) for end in places(gap)]
    low, high = charts.padded(min(ends), max(ends))
    rows = "".join(difference_row(one, found.goal, low, high) for one in others)
    note = (
        f'<p class="quiet">{escaped(heading(named(found.goal)))} minus that of '
        f"{escaped(found.best.name)}, the best; lines are 95 % intervals over seeds and rows, the "
        f"upright line is no difference.</p>"
    )
    table = f'<div class="wide"><table class="scores"><tbody>{rows}</tbody></table></div>'
    return section("Differences from the best", table + note)


def places(gap: Score) -> tuple[float, ...]:
    """What a drawing of a difference must reach."""
    return (*(gap.interval or (gap.value,)), 0.0)


def difference_row(one: VariantResult, goal: str, low: float, high: float) -> str:
    """One variant: its difference in numbers and as a picture, and the verdict."""
    gap, chance = one.difference, one.p_value
    assert gap is not None
    value, start, end = (written(goal, x, "+") for x in (gap.value, gap.low, gap.high))
    between = f"{start} – {end}" if gap.interval else escaped(gap.reason)
    drawn = charts.whiskers(gap, low, high, "hue-0", difference(goal, gap), zero=True)
    return (
        f'<tr><td class="system">{escaped(one.name)}</td><td class="number">{value}</td>'
        f'<td class="number quiet">{between}</td>'
        f'<td class="number quiet">p {p_value(chance)}</td><td>{one.verdict}</td>'
        f'<td class="picture">{drawn}</td></tr>'
    )


def curves(found: VariantComparison) -> Iterator[str]:
    """The goal on the validation rows while training."""
    lines = {one.name: list(one.curve) for one in found.variants}
    most = style_in(found.goal).most
    drawn = charts.line_chart(lines, f"{named(found.goal)} by step", most=most)
    if drawn:
        yield section(
            f"{heading(named(found.goal))} on the validation rows, by step",
            keyed_figure(list(lines), drawn),
        )


def lengths(found: VariantComparison) -> str:
    """The goal on sequences longer than in training."""
    lines = {
        one.name: [(times, score.value) for times, score in one.lengths.items() if score]
        for one in found.variants
    }
    most = style_in(found.goal).most
    drawn = charts.line_chart(lines, "Score by length", "times the length in training", most=most)
    if not drawn:
        return ""
    return section(
        f"{heading(named(found.goal))} on longer sequences", keyed_figure(list(lines), drawn)
    )


def costs(found: VariantComparison) -> str:
    """Parameters, speed and memory, each with a bar."""
    kinds: dict[str, Callable[[VariantResult], int | float | None]] = {
        "parameters": lambda one: one.parameters,
        "steps": lambda one: one.steps,
        "tokens/s in training": lambda one: one.tokens_per_second,
        "rows/s answering": lambda one: one.rows_per_second,
        "memory in training, bytes": lambda one: one.bytes,
    }
    bodies = "".join(cost_rows(name, value, found) for name, value in kinds.items())
    return section("Costs", f'<div class="wide"><table class="scores">{bodies}</table></div>')


def cost_rows(
    name: str, value: Callable[[VariantResult], int | float | None], found: VariantComparison
) -> str:
    """One cost, one row per variant."""
    values = [value(one) for one in found.variants]
    most = max((x for x in values if x is not None), default=0)
    rows = []
    for index, (one, cost) in enumerate(zip(found.variants, values, strict=True)):
        label = f'<th rowspan="{len(values)}">{escaped(name)}</th>' if not index else ""
        text = "–" if cost is None else shortened(cost)
        hue = f"hue-{index % charts.COLOURS}"
        drawn = charts.bar(cost / most, hue, text) if cost and most else ""
        rows.append(
            f'<tr>{label}<td class="system">{escaped(one.name)}</td>'
            f'<td class="number">{text}</td><td class="picture">{drawn}</td></tr>'
        )
    return f"<tbody>{''.join(rows)}</tbody>"


def write_comparison(found: VariantComparison, folder: Path) -> None:
    """Write comparison.html, comparison.md and comparison.json into the folder."""
    write_text(variants_page(found), folder / f"{NAME}.html")
    write_text(found.markdown(), folder / f"{NAME}.md")
    write_json(found.as_values(), folder / f"{NAME}.json")
