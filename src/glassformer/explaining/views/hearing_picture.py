"""What was heard as a picture, all on one axis of time.

    words          where each is spoken
    spectrogram    the features that the model reads
    CTC            the probability of each token of the text, and of the blank
    influence      how much each stretch of the sound speaks for each word
    attention      how much each written token takes from every moment

Below are the axis of time, what the colours say, and notes. It is drawn by matplotlib, an optional
dependency; system fonts are searched for characters that its own font lacks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from glassformer.explaining.views.blocks import Fonts
from glassformer.explaining.views.matrix_picture import painted
from glassformer.explaining.views.pictures import INK, QUIET, check_picture, save_picture
from glassformer.terminal import printable

BLANK, WORD_PAPER, WORD_EDGE = "#9a9fa4", "#f1f1ed", "#d4d4ce"
HUES = ("#0072B2", "#D55E00", "#009E73", "#B8578F", "#B27700", "#3B8FC4")
INCHES = 1.9  # of a second
NARROWEST, WIDEST = 7.0, 30.0
MARGINS = (0.75, 0.2)  # inches to the left and right
GAP, BELOW, ABOVE = 0.14, 0.5, 0.1  # inches between panels, below and above them
WORDS, SPECTROGRAM, INFLUENCE, CTC = 0.36, 1.7, 0.55, 1.35  # heights, least for influence
NOTE = 0.17  # the height of a line of notes
TOKEN = 0.16  # the height of a row of attention
ROWS = (1.0, 6.0)  # of attention: least and most inches
USED = "0123456789.,:"
SIZE, SMALL, SMALLEST = 11.0, 8.0, 5.0  # of fonts
WORD, LETTER = 0.085, 0.075  # inches that a letter of a word, and a token's label, needs


@dataclass(frozen=True, eq=False, kw_only=True, slots=True)
class HearingPicture:
    """What is drawn.

    Attributes:
        features: What the model reads, low frequencies first.
        seconds, vector: How long it lasts, and how long each vector of the encoder.
        unit, ticks: What features are, and labels of some.
        words: Each with its start and end in seconds.
        tokens: What was written.
        posteriors: By vector, for the blank and each token of `names`; None without CTC.
        attention: By written token and vector; None without a decoder.
        influence: By target and stretch of the sound, if it was found out.
        targets: What influence is on.
        signed: Whether influence tells for from against.
        stretches: Where each starts and ends, in seconds.
        notes: What is said below, such as how far influence can be trusted.
        frame: Seconds from one frame to the next.
    """

    features: Float[np.ndarray, "frames M"]
    seconds: float
    vector: float
    unit: str
    ticks: Sequence[tuple[float, str]]
    words: Sequence[tuple[str, float, float]]
    tokens: Sequence[str]
    names: Sequence[str] = ()
    posteriors: Float[np.ndarray, "S names"] | None = None
    attention: Float[np.ndarray, "T S"] | None = None
    influence: Float[np.ndarray, "words stretches"] | None = None
    targets: Sequence[str] = ()
    signed: bool = True
    stretches: Sequence[tuple[float, float]] = ()
    notes: Sequence[str] = ()
    frame: float = 0.01

    @property
    def text(self) -> str:
        """All characters that are drawn, besides those of the wording itself."""
        words = (word for word, _, _ in self.words)
        return "".join([*words, *self.tokens, *self.names, *self.targets, *self.notes])

    @property
    def legend(self) -> str:
        """What the colours of the panels say."""
        said = []
        if self.influence is not None:
            colours = "blue for, orange against" if self.signed else "the darker, the more"
            said.append(f"Influence: {colours}.")
        if self.posteriors is not None:
            said.append("CTC: grey for the blank, colours for tokens, named at their peaks.")
        if self.attention is not None:
            said.append("Attention: the darker, the more.")
        return " ".join(said)


def draw_hearing(heard: HearingPicture, path: Path) -> None:
    """Draw the panels that there are, one below the other."""
    check_picture(path)
    fonts = Fonts.for_texts(heard.text, USED)
    panels = panels_of(heard)
    width = min(max(INCHES * heard.seconds + sum(MARGINS), NARROWEST), WIDEST)
    inside = width - sum(MARGINS)
    notes = [
        line for note in (heard.legend, *heard.notes) for line in fonts.wrapped(note, SMALL, inside)
    ]
    height = ABOVE + sum(tall + GAP for tall, _ in panels) - GAP + BELOW + NOTE * len(notes)
    figure = import_module("matplotlib.figure").Figure(figsize=(width, height), facecolor="white")
    top = height - ABOVE
    for number, (tall, draw) in enumerate(panels):
        box = (MARGINS[0] / width, (top - tall) / height, inside / width, tall / height)
        axes = figure.add_axes(box, xlim=(0, heard.seconds))
        draw(axes, heard, fonts.families, inside / heard.seconds)
        finish(axes, last=number == len(panels) - 1)
        top -= tall + GAP
    for number, line in enumerate(notes):
        place = (MARGINS[0] / width, (0.1 + NOTE * (len(notes) - 1 - number)) / height)
        figure.text(*place, line, **fonts.style(SMALL, color=QUIET))
    save_picture(figure, path)


def panels_of(heard: HearingPicture) -> list[tuple[float, Any]]:
    """The height of each panel, and what draws it."""
    panels: list[tuple[float, Any]] = [(SPECTROGRAM, draw_features)]
    if heard.words:
        panels.insert(0, (WORDS, draw_words))
    if heard.influence is not None:
        rows = min(max(TOKEN * len(heard.influence), INFLUENCE), ROWS[1])
        panels.append((rows, draw_influence))
    if heard.posteriors is not None:
        panels.append((CTC, draw_posteriors))
    if heard.attention is not None:
        panels.append((min(max(TOKEN * len(heard.tokens), ROWS[0]), ROWS[1]), draw_attention))
    return panels


def finish(axes: Any, *, last: bool) -> None:
    """Give a panel thin edges, and times if it is the last."""
    for side in axes.spines.values():
        side.set_linewidth(0.6)
        side.set_color(QUIET)
    axes.tick_params(length=2.5, width=0.6, labelsize=SMALL, colors=QUIET, labelcolor=INK)
    if last:
        axes.set_xlabel("seconds", fontsize=SMALL, color=QUIET, labelpad=2)
    else:
        axes.tick_params(labelbottom=False, bottom=False)


def draw_words(axes: Any, heard: HearingPicture, families: Sequence[str], inches: float) -> None:
    """A bar for each word, with the word in it; all smaller where two of them would touch."""
    axes.set_axis_off()
    axes.set_ylim(0, 1)
    rooms = [
        inches * (c + d - a - b) / (len(word) + len(following) + 2)
        for (word, a, b), (following, c, d) in pairwise(heard.words)
    ]  # for each character
    size = min(SIZE, max(SIZE * min(rooms, default=WORD) / WORD, SMALLEST))
    style = {"ha": "center", "va": "center", "color": INK, "fontsize": size}
    for word, start, end in heard.words:
        paper = {"facecolor": WORD_PAPER, "edgecolor": WORD_EDGE, "linewidth": 0.6}
        axes.axvspan(start, end, 0.02, 0.98, **paper)
        axes.text((start + end) / 2, 0.5, printable(word), **style, **plain(families))


def draw_features(axes: Any, heard: HearingPicture, families: Sequence[str], inches: float) -> None:
    """The spectrogram, from the faintest to the loudest that matter."""
    low, high = np.percentile(heard.features, (5, 99.7))
    frames, bins = heard.features.shape
    extent = (0, frames * heard.frame, 0, bins)
    axes.imshow(
        heard.features.T, origin="lower", aspect="auto", extent=extent, cmap="magma",
        vmin=low, vmax=high, interpolation="bilinear", rasterized=True,
    )  # fmt: skip
    axes.set_yticks([place for place, _ in heard.ticks], [label for _, label in heard.ticks])
    draw_edges(axes, heard, "white", alpha=0.45)
    axes.set(xlim=(0, heard.seconds), ylim=(0, bins))
    label(axes, heard.unit)


def draw_influence(
    axes: Any, heard: HearingPicture, families: Sequence[str], inches: float
) -> None:
    """A row for each target: blue where the sound speaks for it, orange where it speaks against."""
    assert heard.influence is not None
    edges = [heard.stretches[0][0], *(end for _, end in heard.stretches)]
    rows = np.arange(len(heard.influence) + 1)
    colours = painted(heard.influence, signed=heard.signed)
    axes.pcolormesh(edges, rows, colours, rasterized=True)
    axes.set(xlim=(0, heard.seconds), ylim=(len(heard.influence), 0), yticks=[])
    draw_rows(axes, heard.targets, families)
    draw_edges(axes, heard, QUIET, alpha=0.35)
    label(axes, "influence")


def draw_posteriors(
    axes: Any, heard: HearingPicture, families: Sequence[str], inches: float
) -> None:
    """A curve for every token, filled, with its name above each of its peaks."""
    assert heard.posteriors is not None
    times = (np.arange(len(heard.posteriors)) + 0.5) * heard.vector
    axes.plot(times, heard.posteriors[:, 0], color=BLANK, linewidth=0.8)
    latest = -1.0
    for number in range(1, len(heard.names)):
        curve, hue = heard.posteriors[:, number], hue_of(number, heard.names[number])
        axes.fill_between(times, curve, color=hue, alpha=0.3, linewidth=0)
        axes.plot(times, curve, color=hue, linewidth=0.9)
    for at, number in peaks(heard.posteriors):
        if (times[at] - latest) * inches < LETTER:
            continue
        latest, name = times[at], heard.names[number]
        place = (times[at], heard.posteriors[at, number] + 0.04)
        style = {"ha": "center", "color": INK, "fontsize": SMALL}
        axes.text(*place, shown(name), **style, **plain(families))
    axes.set_ylim(0, 1.22)
    axes.set_yticks((0, 0.5, 1), ("0", "", "1"))
    label(axes, "CTC")


def draw_attention(
    axes: Any, heard: HearingPicture, families: Sequence[str], inches: float
) -> None:
    """A row for each written token, the first on top."""
    assert heard.attention is not None
    rows = len(heard.tokens)
    extent = (0, heard.attention.shape[1] * heard.vector, rows, 0)
    drawn = np.minimum(heard.attention, np.percentile(heard.attention, 99.5))
    axes.imshow(
        painted(drawn, signed=False), aspect="auto", extent=extent, interpolation="nearest",
        rasterized=True,
    )  # fmt: skip
    draw_rows(axes, heard.tokens, families)
    draw_edges(axes, heard, QUIET, alpha=0.35)
    axes.set_xlim(0, heard.seconds)
    label(axes, "attention")


def draw_rows(axes: Any, names: Sequence[str], families: Sequence[str]) -> None:
    """Names beside rows, unless there are too many: then rows are numbered, or have none."""
    if names and len(names) * TOKEN <= ROWS[1]:
        axes.set_yticks(np.arange(len(names)) + 0.5, [shown(name) for name in names])
        for text in axes.get_yticklabels():
            text.set(parse_math=False, fontfamily=families)


def hue_of(number: int, name: str) -> str:
    """The colour of a token; spaces are grey."""
    return HUES[number % len(HUES)] if name.strip() else QUIET


def draw_edges(axes: Any, heard: HearingPicture, colour: str, *, alpha: float) -> None:
    """A line where each word begins and ends."""
    for _, start, end in heard.words:
        for at in (start, end):
            axes.axvline(at, color=colour, linewidth=0.5, alpha=alpha)


def peaks(posteriors: Float[np.ndarray, "S names"]) -> list[tuple[int, int]]:
    """Where tokens other than the blank are the likeliest: at each stretch, the highest place."""
    found: list[tuple[int, int]] = []
    before = 0
    for at, number in enumerate(posteriors.argmax(1).tolist()):
        if number and number != before:
            found.append((at, number))
        elif number and posteriors[at, number] > posteriors[found[-1][0], number]:
            found[-1] = (at, number)
        before = number
    return found


def label(axes: Any, text: str) -> None:
    """What a panel shows, to the left of it."""
    axes.set_ylabel(text, fontsize=SMALL, color=QUIET)
    axes.yaxis.set_label_coords(-0.55 / axes.bbox.width * axes.figure.dpi, 0.5)


def shown(token: str) -> str:
    """A token as a label; a space can be seen."""
    return printable(token).replace(" ", "␣")


def plain(families: Sequence[str]) -> dict[str, Any]:
    """How texts are set: in fonts that have them, and a dollar sign starts no formula."""
    return {"fontfamily": families, "parse_math": False}
