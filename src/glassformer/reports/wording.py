"""Formatting of scores in pages and terminals: names, decimals and p-values."""

import math
from collections.abc import Mapping
from typing import Any

from glassformer.metrics.intervals import Score
from glassformer.metrics.styles import STYLES, ScoreStyle, style_of
from glassformer.metrics.units import Units

SMALLEST_P = 0.001  # smaller values are shown as below this
BASELINE_WINS = "The baseline is better here"  # how the notes on it begin
BASELINE_AHEAD = "The baseline may be better here"


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


def interval(score: str, ends: Mapping[str, Any] | None) -> str:
    """A score and its interval, if it has one of any width; empty if there is no score.

    >>> interval("bleu", {"value": 31.23, "low": 30.0, "high": 32.0})
    '31.2 [30.0, 32.0]'
    >>> interval("coverage", {"value": 0.436, "low": 0.436, "high": 0.436})
    '0.436'
    >>> interval("bleu", {"value": 31.23, "low": None, "high": None, "reason": "one row"})
    '31.2'
    """
    if ends is None:
        return ""
    low, high = ends.get("low"), ends.get("high")
    if low == high == ends.get("value") or (low is None and high is None):
        return written(score, number_in(ends, "value"))
    return "{value} [{low}, {high}]".format(
        **{end: written(score, number_in(ends, end)) for end in ("value", "low", "high")}
    )


def number_in(ends: Mapping[str, Any], name: str) -> float | None:
    """A number of a score in JSON; None if it has none."""
    found = ends.get(name)
    return float(found) if isinstance(found, int | float) else None


def without_intervals(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why scores have no interval: a sentence for each reason.

    Args:
        scores: By system, then by score, as in JSON.

    >>> scores = {"bleu": {"value": 3.1, "reason": "one row: no interval"}}
    >>> without_intervals({"this model": scores})
    ['BLEU: one row: no interval.']
    """
    by_reason: dict[str, list[str]] = {}
    for found in scores.values():
        for name, ends in found.items():
            if reason := ends.get("reason"):
                by_reason.setdefault(str(reason), []).append(named(name))
    return [f"{', '.join(dict.fromkeys(names))}: {reason}." for reason, names in by_reason.items()]


def interval_notes(scores: Mapping[str, Mapping[str, Score]], units: Units) -> list[str]:
    """What intervals and p-values go by, and which scores have no interval.

    Args:
        units: Of the rows that were scored.
    """
    values = {
        system: {name: score.as_values() for name, score in found.items()}
        for system, found in scores.items()
    }
    notes = without_intervals(values)
    if units.groups is not None:
        counts = units.described(len(units.groups))
        notes.insert(0, f"Intervals and p-values go by {units.noun}: {counts}.")
    return notes


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


def difference(score: str, found: Score) -> str:
    """The difference of two scores and its interval, if it has one.

    >>> difference("bleu", Score(1.23, -0.5, 3.0))
    '+1.2 [-0.5, +3.0]'
    >>> difference("bleu", Score.without_interval(1.23, "one row: no comparison"))
    '+1.2'
    """
    value = written(score, found.value, "+")
    if found.interval is None:
        return value
    low, high = (written(score, end, "+") for end in found.interval)
    return f"{value} [{low}, {high}]"


def amount(score: str, difference: float) -> str:
    """The size of a difference of two scores in words; shares are in points.

    >>> amount("bleu", -1.26), amount("accuracy", 0.2), amount("loss", 0.05)
    ('1.3', '20.0 points', '0.050')
    """
    far = abs(difference)
    return f"{100 * far:.1f} points" if style_in(score).most == 1 else written(score, far)


def p_value(value: float | None) -> str:
    """A p-value, rounded.

    >>> p_value(0.0347), p_value(6.37e-58), p_value(None)
    ('0.035', '< 0.001', '–')
    """
    if value is None:
        return "–"
    return f"{value:.2g}" if value >= SMALLEST_P else f"< {SMALLEST_P}"


def chance(value: float | None) -> str:
    """A p-value in a sentence.

    >>> chance(0.0347), chance(6.37e-58), chance(None)
    ('p = 0.035', 'p < 0.001', 'no p-value')
    """
    if value is None:
        return "no p-value"
    return f"p {'= ' if value >= SMALLEST_P else ''}{p_value(value)}"
