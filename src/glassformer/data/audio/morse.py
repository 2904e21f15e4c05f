"""Morse code as sound: the code of ITU-R M.1677-1, keyed by hand, fading, in white noise.

A dot is one unit of time, a dash about 3; the gaps are 1 inside a letter, 3 between letters and 7
between words. At `wpm` words a minute a unit is 1.2 / wpm seconds (the word PARIS has 50 units).
"""

from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
from jaxtyping import Float

CODE = {
    **{"A": ".-", "B": "-...", "C": "-.-.", "D": "-..", "E": ".", "F": "..-.", "G": "--."},
    **{"H": "....", "I": "..", "J": ".---", "K": "-.-", "L": ".-..", "M": "--", "N": "-."},
    **{"O": "---", "P": ".--.", "Q": "--.-", "R": ".-.", "S": "...", "T": "-", "U": "..-"},
    **{"V": "...-", "W": ".--", "X": "-..-", "Y": "-.--", "Z": "--.."},
    **{"0": "-----", "1": ".----", "2": "..---", "3": "...--", "4": "....-", "5": "....."},
    **{"6": "-....", "7": "--...", "8": "---..", "9": "----."},
    **{".": ".-.-.-", ",": "--..--", ":": "---...", "?": "..--..", "'": ".----.", "-": "-....-"},
    **{"/": "-..-.", "(": "-.--.", ")": "-.--.-", '"': ".-..-.", "=": "-...-", "+": ".-.-."},
    "@": ".--.-.",
}
RAMP = 0.006  # seconds from silence to full strength, so that the key does not click
BAND = 500.0  # Hz around the tone, in which noise is measured
MARGINS = (0.05, 0.2)  # seconds of silence before and after
LOUDNESS, PEAK = 0.05, 0.9  # of full scale: the tone, and the loudest noise

Sound = Float[np.ndarray, " _"]  # no name: each has its own length


@dataclass(frozen=True, kw_only=True, slots=True)
class Keying:
    """How a text is sent, and how it arrives.

    Args:
        wpm: Words a minute.
        pitch: Hz.
        dash: The length of a dash, in units.
        spacing: How much longer the gaps between letters and words are than they should be.
        jitter: Standard deviation of the logarithm of each length.
        fading: How far the strength sinks at most, in dB.
        snr: Mean power while the key is down over the noise in BAND, in dB; infinity for no noise.
    """

    wpm: int
    pitch: float = 600.0
    dash: float = 3.0
    spacing: float = 1.0
    jitter: float = 0.0
    fading: float = 0.0
    snr: float = np.inf


def units_of(text: str, *, dash: float = 3.0, spacing: float = 1.0) -> list[float]:
    """Units of time of each mark and each gap after it, in turn; it begins and ends with a mark.

    >>> units_of("AN E")
    [1.0, 1.0, 3.0, 3.0, 3.0, 1.0, 1.0, 7.0, 1.0]
    """
    words = []
    for word in text.split():
        letters = [_joined([[dash if mark == "-" else 1.0] for mark in CODE[c]], 1.0) for c in word]
        words.append(_joined(letters, 3 * spacing))
    return _joined(words, 7 * spacing)


def seconds_of(text: str, wpm: int) -> float:
    """How long a text takes, keyed perfectly."""
    return sum(units_of(text)) * 1.2 / wpm


def send(text: str, keying: Keying, *, rate: int, rng: np.random.Generator) -> Sound:
    """A text as sound, between -1 and 1."""
    units = np.array(units_of(text, dash=keying.dash, spacing=keying.spacing))
    lengths = units * np.exp(rng.normal(0.0, keying.jitter, len(units))) * 1.2 / keying.wpm
    before, after = rng.uniform(*MARGINS, 2)
    down = _key_down(np.concatenate([[before], lengths, [after]]), rate)
    strength = _ramped(down, rate) * _faded(down, keying.fading, rate, rng)
    phase = 2 * np.pi * keying.pitch * np.arange(len(down)) / rate
    clean = strength * np.sin(phase + rng.uniform(0, 2 * np.pi))
    noise_in_band = 0.5 * 10 ** (-keying.snr / 10)  # the power of the tone is 1/2
    deviation = np.sqrt(noise_in_band * (rate / 2) / BAND)
    sound = clean + deviation * rng.standard_normal(len(down))
    return sound * min(LOUDNESS, PEAK / np.abs(sound).max())


def _joined(parts: list[list[float]], gap: float) -> list[float]:
    """The parts with a gap between them."""
    return [*chain.from_iterable(chain.from_iterable(zip(parts, repeat([gap]), strict=False)))][:-1]


def _key_down(lengths: Float[np.ndarray, " _"], rate: int) -> Sound:
    """1 while the key is down, else 0; lengths are in seconds, of a gap first."""
    ends = np.round(np.cumsum(lengths) * rate).astype(int)
    return np.repeat(np.arange(len(lengths)) % 2.0, np.diff(ends, prepend=0))


def _ramped(down: Sound, rate: int) -> Sound:
    """Every change takes RAMP seconds."""
    window = np.hanning(round(RAMP * rate) + 2)
    return np.convolve(down, window / window.sum(), mode="same")


def _faded(down: Sound, depth: float, rate: int, rng: np.random.Generator) -> Sound:
    """Slow waves of strength; the mean power while the key is down stays 1."""
    seconds = np.arange(len(down)) / rate
    wave = np.cos(2 * np.pi * rng.uniform(0.1, 0.8) * seconds + rng.uniform(0, 2 * np.pi))
    strength = 10 ** (-depth * (1 - wave) / 40)
    return strength / np.sqrt(np.mean(strength[down > 0] ** 2))
