"""What was heard as a picture, all on one axis of time.

    words          where each is spoken
    spectrogram    the features that the model reads
    CTC            the probability of each token of the text, and of the blank
    influence      how much each stretch of the sound speaks for each word
    attention      how much each written token takes from every moment

It is drawn by matplotlib, an optional dependency; system fonts are searched for characters that its
own font lacks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from glassformer.explaining.views.matrix_picture import painted
from glassformer.explaining.views.pictures import (
    INK,
    LINE,
    check_picture,
    families_for,
    save_picture,
)
from glassformer.terminal import printable

QUIET, BLANK = "#767676", "#BDBDBD"
HUES = ("#0072B2", "#D55E00", "#009E73", "#B8578F", "#B27700", "#3B8FC4")
INCHES = 1.9  # of a second
NARROWEST, WIDEST = 7.0, 30.0
MARGINS = (0.75, 0.2)  # inches to the left and right
GAP, BELOW, ABOVE = 0.14, 0.5, 0.1  # inches between panels, below and above them
WORDS, SPECTROGRAM, CTC = 0.42, 1.7, 1.35  # heights
NOTE = 0.2  # the height of the note
TOKEN = 0.16  # the height of a row of attention
ROWS = (1.0, 6.0)  # of attention: least and most inches
SIZE, SMALL, SMALLEST = 11, 8, 5  # of fonts
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
        influence: By word and stretch of the sound, if it was found out.
        stretches: Where each starts and ends, in seconds.
        note: How far influence can be trusted.
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
    stretches: Sequence[tuple[float, float]] = ()
    note: str = ""

    @property
    def text(self) -> str:
        """All characters that are drawn."""
        return "".join([*(word for word, _, _ in self.words), *self.tokens, *self.names, self.note])


def draw_hearing(heard: HearingPicture, path: Path) -> None:
    """Draw the panels that there are, one below the other."""
    check_picture(path)
    families = families_for(printable(heard.text))
    panels: list[tuple[float, Any]] = [(SPECTROGRAM, draw_features)]
    if heard.words:
        panels.insert(0, (WORDS, draw_words))
    if heard.influence is not None:
        panels.append((min(TOKEN * max(len(heard.influence), 2), ROWS[1]), draw_influence))
    if heard.posteriors is not None:
        panels.append((CTC, draw_posteriors))
    if heard.attention is not None:
        panels.append((min(max(TOKEN * len(heard.tokens), ROWS[0]), ROWS[1]), draw_attention))
    width = min(max(INCHES * heard.seconds + sum(MARGINS), NARROWEST), WIDEST)
    below = BELOW + (NOTE if heard.note else 0)
    height = ABOVE + sum(tall + GAP for tall, _ in panels) - GAP + below
    figure = import_module("matplotlib.figure").Figure(figsize=(width, height), facecolor="white")
    inside, top = width - sum(MARGINS), height - ABOVE
    for number, (tall, draw) in enumerate(panels):
        box = (MARGINS[0] / width, (top - tall) / height, inside / width, tall / height)
        axes = figure.add_axes(box, xlim=(0, heard.seconds))
        draw(axes, heard, families, inside / heard.seconds)
        finish(axes, last=number == len(panels) - 1)
        top -= tall + GAP
    if heard.note:
        place = (MARGINS[0] / width, 0.08 / height)
        figure.text(*place, heard.note, fontsize=SMALL, color=QUIET, **plain(families))
    save_picture(figure, path)


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
    for number, (word, start, end) in enumerate(heard.words):
        axes.axvspan(start, end, 0.02, 0.98, color=HUES[number % 2], alpha=0.16, linewidth=0)
        axes.text((start + end) / 2, 0.5, printable(word), **style, **plain(families))


def draw_features(axes: Any, heard: HearingPicture, families: Sequence[str], inches: float) -> None:
    """The spectrogram, from the faintest to the loudest that matter."""
    low, high = np.percentile(heard.features, (5, 99.7))
    extent = (0, heard.seconds, 0, heard.features.shape[1])
    axes.imshow(
        heard.features.T, origin="lower", aspect="auto", extent=extent, cmap="magma",
        vmin=low, vmax=high, interpolation="bilinear", rasterized=True,
    )  # fmt: skip
    axes.set_yticks([place for place, _ in heard.ticks], [label for _, label in heard.ticks])
    draw_edges(axes, heard, "white", alpha=0.45)
    axes.set_ylim(0, heard.features.shape[1])
    label(axes, heard.unit)


def draw_influence(
    axes: Any, heard: HearingPicture, families: Sequence[str], inches: float
) -> None:
    """A row for each word: blue where the sound speaks for it, orange where it speaks against."""
    assert heard.influence is not None
    edges = [heard.stretches[0][0], *(end for _, end in heard.stretches)]
    rows = np.arange(len(heard.influence) + 1)
    axes.pcolormesh(edges, rows, painted(heard.influence), rasterized=True)
    axes.set(xlim=(0, heard.seconds), ylim=(len(heard.influence), 0), yticks=[])
    draw_edges(axes, heard, LINE, alpha=0.35)
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
        style = {"ha": "center", "color": hue_of(number, name), "fontsize": SMALL}
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
    axes.imshow(
        heard.attention, aspect="auto", extent=extent, cmap="Blues", vmin=0,
        vmax=np.percentile(heard.attention, 99.5), interpolation="nearest", rasterized=True,
    )  # fmt: skip
    if rows * TOKEN <= ROWS[1]:  # otherwise tokens are numbered
        axes.set_yticks(np.arange(rows) + 0.5, [shown(token) for token in heard.tokens])
        for text in axes.get_yticklabels():
            text.set(parse_math=False, fontfamily=families)
    draw_edges(axes, heard, LINE, alpha=0.35)
    axes.set_xlim(0, heard.seconds)
    label(axes, "attention")


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
