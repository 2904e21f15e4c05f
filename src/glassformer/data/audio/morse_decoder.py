"""Reading Morse code without learning: an adaptive threshold on the strength of the tone.

    sound -> pitch: the strongest tone -> strength of that tone, smoothed
          -> key down or up: a threshold between the local floor and peak, with hysteresis
          -> lengths of marks and gaps -> the unit that explains them best -> letters

The unit decides how much to smooth, so all but the first step are done twice.
"""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from jaxtyping import Bool, Complex, Float

from glassformer.data.audio.morse import CODE

LETTERS = {marks: letter for letter, marks in CODE.items()}
PITCHES = (300.0, 1000.0)  # Hz, where a tone is looked for
STEPS = 500  # values of strength a second
UNITS = np.geomspace(1.2 / 45, 1.2 / 9, 80)  # seconds, from 45 words a minute to 9
FIRST_UNIT = 1.2 / 30
SMOOTHING = 0.7
WINDOW = 14  # units: no gap is so long
FLOOR, TOP = 15, 85  # percentiles of the strength: the key is down about half of the time
FADED = 0.5  # of the usual peak over the floor: weaker ones are silence
DOWN, UP = 0.55, 0.4  # of the way from floor to peak: where a mark begins, and where it ends
GLITCH = 0.35  # units; shorter marks and gaps are noise
LARGEST_MISFIT = 0.3  # of a length, so that noise does not decide about the unit

Runs = list[tuple[bool, float]]  # key down or up, and for how many seconds


def decode(sound: Float[np.ndarray, " _"], rate: int) -> str:
    """The text of a recording of Morse code; letters that are none are left out."""
    tone = tone_of(sound, rate)
    unit = FIRST_UNIT
    for _ in range(3):
        runs = runs_of(smoothed(tone, SMOOTHING * unit), unit)
        unit = unit_of(runs)
    return letters_of(without_glitches(runs, GLITCH * unit), unit)


def tone_of(sound: Float[np.ndarray, " _"], rate: int) -> Complex[np.ndarray, " _"]:
    """The strongest tone at STEPS values a second, moved to 0 Hz."""
    size = 1 << (rate // 4).bit_length()  # samples: a few Hz a bin
    pieces = np.lib.stride_tricks.sliding_window_view(
        np.pad(sound, (0, max(0, size - len(sound)))), size
    )[:: size // 2]
    power = np.square(np.abs(np.fft.rfft(pieces * np.hanning(size)))).mean(0)
    pitches = np.fft.rfftfreq(size, 1 / rate)
    power[(pitches < PITCHES[0]) | (pitches > PITCHES[1])] = 0.0
    shifted = sound * np.exp(-2j * np.pi * pitches[power.argmax()] * np.arange(len(sound)) / rate)
    step = rate // STEPS
    return shifted[: len(shifted) // step * step].reshape(-1, step).mean(1)


def smoothed(tone: Complex[np.ndarray, " _"], seconds: float) -> Float[np.ndarray, " _"]:
    """The strength of the tone, as wide a filter as `seconds` allow."""
    window = np.hanning(max(1, round(seconds * 2 * STEPS)) + 2)
    return np.abs(np.convolve(tone, window / window.sum(), mode="same"))


def runs_of(strength: Float[np.ndarray, " _"], unit: float) -> Runs:
    """How long the key is down and up, in turn."""
    floor, top = np.percentile(strength, (FLOOR, TOP))
    width, hop = round(WINDOW * unit * STEPS), STEPS // 20
    windows = np.lib.stride_tricks.sliding_window_view(np.pad(strength, width // 2), width)[::hop]
    peaks = np.maximum(np.percentile(windows, TOP, axis=1), floor + FADED * (top - floor))
    peak = np.interp(np.arange(len(strength)), np.arange(len(windows)) * hop, peaks)
    down = hysteresis((strength - floor) / (peak - floor + 1e-9), DOWN, UP)
    return [(key, len([*steps]) / STEPS) for key, steps in groupby(down.tolist())]


def hysteresis(height: Float[np.ndarray, " _"], down: float, up: float) -> Bool[np.ndarray, " _"]:
    """True from where a value exceeds `down` to where it falls below `up`."""
    decided = (height > down) | (height < up)
    last = np.maximum.accumulate(np.where(decided, np.arange(len(height)), 0))
    return height[last] > down


def unit_of(runs: Runs) -> float:
    """The unit for which marks are nearest to 1 or 3 units, and gaps to 1, 3 or 7."""
    inner = _trimmed(runs)
    misfits = np.zeros(len(UNITS))
    for key, multiples in ((True, (1, 3)), (False, (1, 3, 7))):
        lengths = np.array([seconds for down, seconds in inner if down == key])
        ideal = np.log(UNITS[:, None] * np.array(multiples))  # (units, multiples)
        off = np.abs(np.log(lengths)[:, None, None] - ideal).min(-1)  # (lengths, units)
        misfits += np.minimum(off, LARGEST_MISFIT).sum(0)
    return float(UNITS[misfits.argmin()])


def without_glitches(runs: Runs, shortest: float) -> Runs:
    """Runs in which what is too short is part of its neighbours."""
    kept: Runs = []
    for key, seconds in _trimmed(runs):
        if kept and (seconds < shortest or kept[-1][0] == key):
            kept[-1] = (kept[-1][0], kept[-1][1] + seconds)
        else:
            kept.append((key, seconds))
    return kept


def letters_of(runs: Runs, unit: float) -> str:
    """Marks and gaps as text."""
    marks = ""
    for key, seconds in _trimmed(runs):
        if key:
            marks += "-" if seconds > 2 * unit else "."
        elif seconds > 2 * unit:
            marks += " / " if seconds > 5 * unit else " "
    words = (
        "".join(LETTERS.get(letter, "") for letter in word.split()) for word in marks.split("/")
    )
    return " ".join(word for word in words if word)


def _trimmed(runs: Sequence[tuple[bool, float]]) -> Runs:
    """Without the silence at both ends."""
    marks = [at for at, (key, _) in enumerate(runs) if key]
    return [*runs[marks[0] : marks[-1] + 1]] if marks else []
