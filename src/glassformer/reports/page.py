"""The page: a report as one self-contained HTML file without scripts.

It begins with the verdict and the scores; what the run is comes after them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from glassformer.files import write_json, write_text
from glassformer.metrics.intervals import Score
from glassformer.reports import charts
from glassformer.reports.markup import cell, escaped
from glassformer.reports.record import Cell, HeatMap, Report, Sound, Table
from glassformer.reports.style import STYLE
from glassformer.reports.wording import interval, named, style_in, written

MOST_NAMES = 30  # of a heat map; beyond, only the most confused pairs are listed
MOST_PAIRS = 20
DEEP = 0.55  # share from which a heat map's cell is dark


def page(report: Report) -> str:
    """The HTML file."""
    sections = [
        verdict(report.verdict),
        score_table(report.scores),
        facts(report.facts),
        *curve_charts(report.curves),
        confusions(report.heat_map),
        reliability(report),
        *(table_section(table) for table in report.tables),
        notes(report.notes),
    ]
    return document(report.title, sections)


def document(title: str, sections: Sequence[str]) -> str:
    """A page of these sections; empty ones are left out."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            '<head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escaped(title)}</title>",
            f"<style>\n{STYLE}\n</style></head>",
            f"<body><main>\n<h1>{escaped(title)}</h1>",
            *(section for section in sections if section),
            "</main></body></html>\n",
        ]
    )


def section(title: str, body: str) -> str:
    """A titled section of the page."""
    return f"<section>\n<h2>{escaped(title)}</h2>\n{body}\n</section>"


def verdict(sentences: Sequence[str]) -> str:
    """How good the model is, above all else."""
    lines = "".join(f"<p>{escaped(sentence)}</p>" for sentence in sentences)
    return f'<section class="verdict">{lines}</section>' if sentences else ""


def facts(pairs: Mapping[str, Cell]) -> str:
    """The facts of the run."""
    rows = "\n".join(f"<dt>{escaped(k)}</dt><dd>{fact(v)}</dd>" for k, v in pairs.items())
    return f"<section><dl>\n{rows}\n</dl></section>" if pairs else ""


def fact(value: Cell) -> str:
    """A fact; numbers without thousands separators, as for a seed."""
    return "–" if value is None else escaped(value)


def score_table(scores: Mapping[str, Mapping[str, Score]], ours: str | None = None) -> str:
    """Every score of every system with its interval, on a common scale.

    Args:
        ours: The system to emphasise; by default the first.
    """
    names = list(dict.fromkeys(name for of_system in scores.values() for name in of_system))
    if not names:
        return ""
    emphasised = next(iter(scores)) if ours is None else ours
    bodies = "\n".join(score_rows(name, scores, emphasised) for name in names)
    note = '<p class="quiet">Dots are scores, lines their 95 % intervals.</p>'
    return section(
        "Scores", f'<div class="wide"><table class="scores">{bodies}</table></div>{note}'
    )


def score_rows(name: str, scores: Mapping[str, Mapping[str, Score]], emphasised: str) -> str:
    """One score, one row per system."""
    having = {system: found[name] for system, found in scores.items() if name in found}
    ends = [
        end
        for s in having.values()
        for end in (s.interval or (s.value,))
        if charts.is_finite((0, end))
    ]
    low, high = charts.padded(min(ends, default=0.0), max(ends, default=1.0))
    rows = []
    for index, (system, score) in enumerate(having.items()):
        hue = f"hue-{list(scores).index(system) % charts.COLOURS}"
        label = f'<th rowspan="{len(having)}">{escaped(named(name))}</th>' if not index else ""
        ours = " ours" if system == emphasised else ""
        value, start, end = (written(name, x) for x in (score.value, score.low, score.high))
        between = f"{start} – {end}" if score.interval and score.low != score.high else ""
        between = between or escaped(score.reason)
        drawn = charts.whiskers(score, low, high, hue, interval(name, score.as_values()))
        rows.append(
            f'<tr>{label}<td class="system{ours}">{escaped(system)}</td>'
            f'<td class="number{ours}">{value}</td>'
            f'<td class="number quiet">{between}</td>'
            f'<td class="picture">{drawn}</td></tr>'
        )
    return f"<tbody>{''.join(rows)}</tbody>"


def keyed_figure(names: Sequence[str], drawn: str) -> str:
    """A chart below the names of its lines, in their colours."""
    keys = "".join(
        f'<span class="key hue-{n % charts.COLOURS}"><i></i>{escaped(named(name))}</span>'
        for n, name in enumerate(names)
    )
    return f"<figure><figcaption>{keys}</figcaption>\n{drawn}</figure>"


def curve_charts(curves: Mapping[str, Sequence[charts.Point]]) -> Iterator[str]:
    """One chart per measure: curves whose names end in the same word share one."""
    by_measure: dict[str, dict[str, Sequence[charts.Point]]] = {}
    for name, points in curves.items():
        last = [name, *name.replace("/", " ").split()][-1]
        by_measure.setdefault(last, {})[name] = points
    for measure, members in by_measure.items():
        most = style_in(measure).most
        drawn = charts.line_chart(members, f"{named(measure)} by step", most=most)
        if drawn:
            figure = keyed_figure(list(members), drawn)
            yield section(heading(named(measure)), figure + training_note(list(members)))


def training_note(names: Sequence[str]) -> str:
    """Why the curves of training and of validation do not meet; empty if they are not both here."""
    kinds = {name.split()[0] for name in names}
    if not {"training", "validation"} <= kinds:
        return ""
    return (
        '<p class="quiet">Training: the mean since the point before, with dropout and whatever '
        "else is random in training. Validation: the model at that step, without.</p>"
    )


def heading(name: str) -> str:
    """A name as a title: capitalised, unless it has its own spelling.

    >>> heading("word error rate"), heading("chrF")
    ('Word error rate', 'chrF')
    """
    return re.sub(r"^[a-z]+\b", lambda first: first[0].capitalize(), name)


def confusions(heat_map: HeatMap | None) -> str:
    """The confusion matrix, or for many classes the most confused pairs."""
    if heat_map is None:
        return ""
    if len(heat_map.names) > MOST_NAMES:
        return table_section(most_confused(heat_map))
    across = "".join(f'<th scope="col"><span>{escaped(n)}</span></th>' for n in heat_map.names)
    none: list[list[int]] = [[] for _ in heat_map.names]
    rows = "\n".join(
        f'<tr><th scope="row">{escaped(name)}</th>{heat_row(*cells)}</tr>'
        for name, *cells in zip(
            heat_map.names,
            heat_map.counts,
            heat_map.low or none,
            heat_map.high or none,
            strict=True,
        )
    )
    table = f'<table class="heat"><thead><tr><td></td>{across}</tr></thead><tbody>{rows}</tbody>'
    small = " Small: the 95 % interval of the count." if heat_map.low else ""
    note = f'<p class="quiet">Rows: the true class. Columns: the predicted class.{small}</p>'
    return section(heat_map.title, f'<div class="wide">{table}</table></div>{note}')


def heat_row(counts: Sequence[int], lows: Sequence[int], highs: Sequence[int]) -> str:
    """The cells of one row, coloured by their share of the row; without bounds, counts alone."""
    total = sum(counts) or 1
    cells = []
    for place, count in enumerate(counts):
        share = count / total
        kind = "deep" if share >= DEEP else "some" if count else "none"
        bounds = count and lows and highs
        spread = f"<small>{lows[place]:,}-{highs[place]:,}</small>" if bounds else ""
        cells.append(f'<td class="{kind}" style="--share:{share:.3f}">{count:,}{spread}</td>')
    return "".join(cells)


def most_confused(heat_map: HeatMap) -> Table:
    """The off-diagonal cells, largest first."""
    names = heat_map.names
    pairs = [
        (count, row, column)
        for row, counts in enumerate(heat_map.counts)
        for column, count in enumerate(counts)
        if row != column and count
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1:]))
    bounds = [heat_map.low, heat_map.high] if heat_map.low else []
    rows: list[tuple[str | int | float, ...]] = [
        (
            names[row],
            names[column],
            count,
            *(bound[row][column] for bound in bounds),
            count / sum(heat_map.counts[row]),
        )
        for count, row, column in pairs[:MOST_PAIRS]
    ]
    between = ("from", "to") if bounds else ()
    header = ("true class", "predicted", "rows", *between, "share of the true class")
    return Table(title=f"{heat_map.title}: the most frequent", header=header, rows=rows)


def reliability(report: Report) -> str:
    """The reliability diagram."""
    if not report.reliability:
        return ""
    note = (
        "On the dashed line, the model is right as often as its confidence says; below it, it is "
        "overconfident. Larger dots represent more predictions."
    )
    drawn = charts.reliability_diagram(report.reliability)
    caption = "<figcaption>accuracy</figcaption>"
    figure = f'<figure class="square">{caption}{drawn}</figure><p class="quiet">{note}</p>'
    return section("Calibration", figure)


def table_section(table: Table) -> str:
    """A titled table, with numbers right-aligned."""
    columns = [[row[i] for row in table.rows] for i in range(len(table.header))]
    kinds = ["number" if all(map(is_number, column)) else "text" for column in columns]
    head = "".join(
        f'<th class="{kind}" scope="col">{escaped(named(name))}</th>'
        for kind, name in zip(kinds, table.header, strict=True)
    )
    rows = "\n".join(
        "<tr>"
        + "".join(
            f'<td class="{kind}">{score_cell(name, value)}</td>'
            for kind, name, value in zip(kinds, table.header, row, strict=True)
        )
        + "</tr>"
        for row in table.rows
    )
    note = f'<p class="quiet">{escaped(table.note)}</p>' if table.note else ""
    body = f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return section(table.title, f'<div class="wide">{body}</div>{note}')


def score_cell(name: str, value: Cell) -> str:
    """The content of a cell in a column that may hold a score."""
    if isinstance(value, float) and style_in(name).most == 100:
        return written(name, value)
    return cell(value)


def is_number(value: Cell) -> bool:
    """Whether the cell is a number, or text that reads as one."""
    if isinstance(value, str):
        return re.fullmatch(r"(< )?[+-]?[\d.,]+(e[+-]\d+)?", value) is not None
    return not isinstance(value, Sound)


def notes(sentences: Sequence[str]) -> str:
    """The notes."""
    if not sentences:
        return ""
    items = "\n".join(f"<li>{escaped(sentence)}</li>" for sentence in sentences)
    return section("Notes", f"<ul>\n{items}\n</ul>")


def write_report(report: Report, folder: Path) -> None:
    """Write `report.json` and `report.html` into the folder, creating it if needed."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(page(report), folder / "report.html")
    write_json(report.as_values(), folder / "report.json")  # last: it marks a run as finished
