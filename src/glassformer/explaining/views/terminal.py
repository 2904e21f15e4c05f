"""An explanation in the terminal: words coloured by influence, and readable without colours.

With colours, words that speak for the target are blue, words against it orange. Without, as in a
pipe, a file or with NO_COLOR, marks tell the same:

    A [wonderful]+++ film, though the [ending]+ was [dull]−−.

Methods without a sign have one colour, green, and one mark, *.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size
from rich.console import ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.explaining.alignment import Alignment
from glassformer.explaining.parts import Image, Target
from glassformer.explaining.record import ExplanationRecord
from glassformer.explaining.views.alignment_terminal import AlignmentTable, fitted
from glassformer.explaining.views.flow import Flow, listed
from glassformer.explaining.views.image_terminal import (
    attention_grid,
    influence_grid,
    panels,
    pixels_of,
)
from glassformer.explaining.views.selection import Selection, select
from glassformer.explaining.views.wording import (
    STRANGE,
    alternatives_of,
    amount,
    influence_heading,
    is_right_to_left,
    method_name,
    no_answer,
    percent,
    reading_of,
    signed,
    visible,
)
from glassformer.terminal import printable, printable_lines

LEVELS = (0.12, 0.4, 0.75)  # shares of the largest influence from which a word has one mark more
FOR = ("#2f8fc9", "bold underline #2f8fc9", "bold #ffffff on #0072b2")
AGAINST = ("#d9722b", "bold underline #d9722b", "bold #ffffff on #bf5400")
AMOUNT = ("#2f9e7a", "bold underline #2f9e7a", "bold #ffffff on #007a5c")
BAR = 24  # cells of a probability of 1
MOST_LABELS, MOST_WORDS, MOST_CELLS = 8, 4, 60
FAINT = 0.04  # of the largest influence: what is below is not listed for a written word
MOST_STRANGE = 12  # pieces that are named
MOST_TOKENS = 48  # of either side of a map of attention


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class ExplanationView:
    """An explanation that rich can draw.

    Attributes:
        layer, head: The attention to show, as `selection.select` takes them.
    """

    explanation: ExplanationRecord
    layer: str | None = None
    head: int | None = None

    def __rich_console__(self, console: Any, options: ConsoleOptions) -> Iterator[Any]:
        coloured = console.color_system is not None and not console.no_color
        shown = self.explanation
        chosen = select(shown.attention, layer=self.layer, head=self.head)
        if shown.reason:
            yield Text(f"{no_answer(shown.reason)}\n", "bold")
        if shown.written:
            yield from _written(shown, coloured=coloured)
        else:
            yield from _labels(shown, coloured=coloured)
        if shown.image is not None:
            yield _image(shown, shown.image, chosen, coloured=coloured)
        if shown.method:
            yield Text(f"\n{method_name(shown.method)}: {shown.verdict or 'not measured'}", "dim")
        if shown.strange:
            yield _strange(shown)
        if chosen is not None and shown.image is None and self._is_shown(chosen):
            yield from _attention(chosen)
        if shown.neighbours:
            yield Text("\nnearest training rows", "bold")
            yield _neighbours(shown)
        for note in shown.notes:
            yield Text(f"\n{printable(note)}", "dim")

    def _is_shown(self, chosen: Selection) -> bool:
        """Whether attention is shown: that to a source, or what was asked for."""
        across = chosen.group.crosses and self.explanation.sound is None
        return across or self.layer is not None or self.head is not None


def _strange(shown: ExplanationRecord) -> RenderableType:
    """The pieces that were not seen in training, or have something that was not."""
    first, *others = listed(
        [Text(visible(shown.pieces[at])) for at in shown.strange[:MOST_STRANGE]]
    )
    more = len(shown.strange) - MOST_STRANGE
    title = Text(f"\n{STRANGE}, marked ?: ", "dim").append(first)
    return Flow([title, *others, *([Text(f" and {more:,} more")] if more > 0 else [])])


def _labels(shown: ExplanationRecord, *, coloured: bool) -> Iterator[RenderableType]:
    """Labels with bars, and the text coloured for the first."""
    names = [fitted(target.text) for target in shown.targets[:MOST_LABELS]]
    margin = max(map(cell_len, names), default=0)
    for name, target in zip(names, shown.targets, strict=False):
        line = Text(set_cell_size(name, margin), "bold" if target is shown.targets[0] else "")
        bar = "█" * round(target.probability * BAR) or "▏"
        yield line.append(f" {percent(target.probability):>7}  ").append(bar, FOR[0])
    if not len(shown.influence):
        return
    yield Text()
    if shown.image is not None:
        return
    if shown.sound is None:
        yield coloured_words(shown, coloured=coloured)
        yield Text()
    if not shown.signed:
        yield from _amounts(shown)
        return
    listed = 1 if len(shown.targets) == 2 else MOST_LABELS  # of two, one mirrors the other
    for target, values in zip(shown.targets[:listed], shown.influence.tolist(), strict=False):
        yield _for_and_against(shown, target, values)


def _image(
    shown: ExplanationRecord, image: Image, chosen: Selection | None, *, coloured: bool
) -> RenderableType:
    """The image, what of it counts for the first label, and where attention looked."""
    drawn = [("image", pixels_of(image, coloured=coloured))]
    if len(shown.influence):
        grid, title = image.grid(shown.influence[0]), f"for {printable(shown.targets[0].text)}"
        marked = influence_grid(grid, coloured=coloured) if shown.signed else attention_grid(grid)
        drawn.append((title, marked))
    if chosen is not None:
        drawn.append((chosen.title, attention_grid(image.looked_at(chosen.attention))))
    return panels(*drawn)


def coloured_words(shown: ExplanationRecord, *, coloured: bool) -> Flow:
    """The text with its words in colours, or with marks, for the first target."""
    values, parts = shown.influence[0].tolist(), list[Text]()
    most = max(map(abs, values), default=0.0) or 1.0
    for at, (piece, value) in enumerate(zip(shown.pieces, values, strict=True)):
        level, strange = sum(abs(value) / most >= share for share in LEVELS), at in shown.strange
        before, core, after = _cut(piece) if level or strange else (piece, "", "")
        part = Text(printable_lines(before))
        if core and coloured:
            part.append(printable_lines(core), _styles(shown, value)[level - 1] if level else "")
        elif core:
            mark = ("+" if value > 0 else "−") if shown.signed else "*"
            part.append(f"[{printable_lines(core)}]{mark * level}")
        if strange:
            part.append("?", "dim")
        parts.append(part.append(printable_lines(after)))
    return Flow(parts)


def _cut(piece: str) -> tuple[str, str, str]:
    """A piece and the white space around it, which can be seen where there is nothing else."""
    core = piece.strip()
    if not core:
        return "", visible(piece), "\n" * piece.count("\n")
    before, _, after = piece.partition(core)
    return before, core, after


def _for_and_against(shown: ExplanationRecord, target: Target, values: Sequence[float]) -> Flow:
    """The words that speak most for and against a target, with their influence."""
    towards = _strongest(shown, values, lambda value: value) or [Text("nothing")]
    against = _strongest(shown, values, lambda value: -value)
    found = _titled(f"for {printable(target.text)}: ", towards)
    if against:
        found[-1].append("; ")
        found += _titled("against: ", against)
    return Flow(found)


def _titled(title: str, parts: Sequence[Text]) -> list[Text]:
    """Parts of a flow, with a title before the first."""
    first, *others = listed(parts)
    return [Text().append(title, "bold").append(first), *others]


def _amounts(shown: ExplanationRecord) -> Iterator[RenderableType]:
    """The words that count most, once for all labels where they are the same."""
    reading, rows = reading_of(shown.method, signed=False), shown.influence.tolist()
    names = [printable(target.text) for target in shown.targets]
    if all(row == rows[0] for row in rows):
        names, rows = [", ".join(names[:MOST_LABELS])], rows[:1]
    for name, values in zip(names, rows, strict=True):
        found = _strongest(shown, values, abs) or [Text("nothing")]
        yield Flow(_titled(f"{reading.title.format(answer=name)}: ", found))
    yield Text(reading.legend, "dim")


def _strongest(
    shown: ExplanationRecord,
    values: Sequence[float],
    size: Callable[[float], float],
    *,
    least: float = 0.0,
) -> list[Text]:
    """The pieces whose influence is largest in size, each with its influence."""
    order = sorted(range(len(values)), key=lambda place: -size(values[place]))
    best = [place for place in order[:MOST_WORDS] if size(values[place]) > least]
    return [
        Text(f"{visible(shown.pieces[place])} ").append(
            signed(values[place]) if shown.signed else amount(values[place]),
            _styles(shown, values[place])[0],
        )
        for place in best
    ]


def _styles(shown: ExplanationRecord, value: float) -> tuple[str, str, str]:
    """The colours of an influence, from faint to strong."""
    if not shown.signed:
        return AMOUNT
    return FOR if value > 0 else AGAINST


def _written(shown: ExplanationRecord, *, coloured: bool) -> Iterator[RenderableType]:
    """The answer, and each word of it: how sure, what else, and what it depends on.

    Where there is one alone, such as the fill of a gap, the text that was read is coloured for it.
    """
    yield Text(printable_lines(shown.answer), "bold")
    yield Text()
    if len(shown.targets) == 1 and shown.sound is None:
        yield coloured_words(shown, coloured=coloured)
        yield Text()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False)
    times, instead, entropies = (
        any(target.time for target in shown.targets),
        any(target.alternatives for target in shown.targets),
        any(target.entropy is not None for target in shown.targets),
    )
    least = FAINT * float(shown.influence.abs().max()) if shown.influence.numel() else 0.0
    table.add_column("word", max_width=24, overflow="fold")
    if times:
        table.add_column("seconds", justify="right")
    table.add_column("sure", justify="right")
    if entropies:
        table.add_column("bits", justify="right")
    if instead:
        table.add_column("instead of", max_width=36, overflow="fold")
    table.add_column(
        influence_heading(shown.method, signed=shown.signed), max_width=MOST_CELLS, overflow="fold"
    )
    for target, values in zip(shown.targets, shown.influence.tolist(), strict=True):
        cells: list[RenderableType] = [Text(visible(target.text), "bold")]
        if times:
            cells.append(Text("" if target.time is None else "{:.2f}-{:.2f}".format(*target.time)))
        cells.append(Text(percent(target.probability)))
        if entropies:
            cells.append(Text("" if target.entropy is None else f"{target.entropy:.1f}"))
        if instead:
            others = alternatives_of(target, MOST_WORDS)
            cells.append(Flow(listed([Text(one, "dim") for one in others])))
        cells.append(Flow(listed(_strongest(shown, values, abs, least=least))))
        table.add_row(*cells)
    yield table
    if not shown.signed:
        yield Text(reading_of(shown.method, signed=False).legend, "dim")


def _attention(chosen: Selection) -> Iterator[RenderableType]:
    """A table of the chosen weights, or of the first tokens on either side."""
    found = chosen.attention
    yield Text(f"\n{chosen.title}", "bold")
    if max(len(found.queries), len(found.keys)) > MOST_TOKENS:
        yield Text(f"the first {MOST_TOKENS} tokens", "dim")
    source, target = (
        tuple(map(visible, side[:MOST_TOKENS])) for side in (found.keys, found.queries)
    )
    weights = found.weights[0, :MOST_TOKENS, :MOST_TOKENS].cpu()
    if is_right_to_left("".join(source)):  # a terminal would turn the line of columns around
        for query, row in zip(target, weights.tolist(), strict=True):
            yield Text(f"{query}: ", "bold").append(_looked_at(source, row))
    else:
        yield AlignmentTable(Alignment(source, target, weights))


def _looked_at(keys: Sequence[str], weights: Sequence[float]) -> str:
    best = sorted(range(len(keys)), key=lambda place: -weights[place])[:MOST_WORDS]
    return ", ".join(f"{keys[place]} {percent(weights[place])}" for place in best)


def _neighbours(shown: ExplanationRecord) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False, pad_edge=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="ellipsis", no_wrap=True, max_width=36)
    table.add_column(overflow="fold", style="dim")
    for one in shown.neighbours:
        text, where = printable(one.text), printable(one.where.rpartition("/")[2])  # no folders
        table.add_row(*map(Text, (f"{one.similarity:.2f}", fitted(one.target), text, where)))
    return table
