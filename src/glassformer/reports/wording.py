"""Formatting of scores in pages and terminals: names, decimals and p-values."""

import math
from collections.abc import Mapping

from glassformer.metrics.styles import STYLES, ScoreStyle, style_of

SMALLEST_P = 0.001  # smaller values are shown as below this
BASELINE_WINS = "The baseline is better here"  # how the notes on it begin
BASELINE_AHEAD = "The baseline may be slightly better here"


def named(text: str) -> str:
    """Display names of the scores in a text.

    >>> named("validation macro_f1"), named("calibration_error")
    ('validation macro-F1', 'calibration error')
    """
    return " ".join(style_of(word).name for word in text.split())


def style_in(text: str) -> ScoreStyle:
    """The style of the score that is named in a text.

    >>> style_in("bleu on the validation split").most, style_in("accuracy").most
    (100, 1)
    """
    return style_of(next((word for word in text.split() if word in STYLES), text))


def written(score: str, value: float | None, sign: str = "") -> str:
    """A score with fixed decimals, so that a column lines up.

    >>> written("ter", 0.746), written("ter", 32.41), written("loss", 32.41)
    ('0.7', '32.4', '32.410')
    >>> written("bleu", -0.04), written("accuracy", -1e-17, "+")
    ('0.0', '+0.000')

    Args:
        sign: `+` for differences.
    """
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:{sign}z.{style_in(score).decimals}f}"  # z: no minus before a zero


def interval(score: str, ends: Mapping[str, float | None] | None) -> str:
    """A score and its interval, if it has any width; empty if there is no score.

    >>> interval("bleu", {"value": 31.23, "low": 30.0, "high": 32.0})
    '31.2 [30.0, 32.0]'
    >>> interval("coverage", {"value": 0.436, "low": 0.436, "high": 0.436})
    '0.436'
    """
    if ends is None:
        return ""
    if ends.get("low") == ends.get("high") == ends.get("value"):
        return written(score, ends.get("value"))
    return "{value} [{low}, {high}]".format(
        **{end: written(score, ends.get(end)) for end in ("value", "low", "high")}
    )


def score_rows(
    scores: Mapping[str, Mapping[str, Mapping[str, float | None]]],
) -> tuple[list[list[str]], list[str]]:
    """A row for every system and a column for every score, and the header."""
    names = list(dict.fromkeys(name for found in scores.values() for name in found))
    rows = [
        [system, *(interval(name, found.get(name)) for name in names)]
        for system, found in scores.items()
    ]
    return rows, ["", *names]


def amount(score: str, difference: float) -> str:
    """The size of a difference of two scores in words; shares are in points.

    >>> amount("bleu", -1.26), amount("accuracy", 0.2), amount("loss", 0.05)
    ('1.3', '20.0 points', '0.050')
    """
    far = abs(difference)
    return f"{100 * far:.1f} points" if style_in(score).most == 1 else written(score, far)


def p_value(value: float) -> str:
    """A p-value, rounded.

    >>> p_value(0.0347), p_value(6.37e-58)
    ('0.035', '< 0.001')
    """
    return f"{value:.2g}" if value >= SMALLEST_P else f"< {SMALLEST_P}"


def chance(value: float) -> str:
    """A p-value in a sentence.

    >>> chance(0.0347), chance(6.37e-58)
    ('p = 0.035', 'p < 0.001')
    """
    return f"p {'= ' if value >= SMALLEST_P else ''}{p_value(value)}"
