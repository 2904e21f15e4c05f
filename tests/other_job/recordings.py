"""Recordings of words, a tone a letter, as WAV files."""

import wave
from pathlib import Path

import numpy as np

RATE = 2000  # samples a second
PITCHES = {"a": 200, "b": 350, "c": 500, "d": 650, "e": 800}
WORDS = ("ad", "bad", "cab", "dab", "ace", "bead", "cede", "abba", "decade")


def play(word: str, rng: np.random.Generator) -> np.ndarray:
    """A tone of its own pitch for every letter, each of another length, with noise and pauses."""
    pieces = []
    for letter in word:
        time = np.arange(rng.integers(41, 67)) / RATE
        tone = np.sin(2 * np.pi * PITCHES[letter] * time + rng.uniform(0, 2 * np.pi))
        pieces += [np.zeros(rng.integers(17, 31)), rng.uniform(0.3, 0.7) * tone]
    sound = np.concatenate(pieces)
    return (sound + rng.normal(0, 0.02, len(sound))).astype(np.float32)


def write_recording(path: Path, sound: np.ndarray) -> None:
    """A sound of numbers between -1 and 1 as a WAV file of 16 bits."""
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(RATE)
        file.writeframes((sound * 2**15).astype("<i2").tobytes())


def write_folder(folder: Path, count: int, seed: int = 0) -> list[tuple[Path, str]]:
    """A folder of recordings, named after their words, and what is in it."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    found = []
    for number in range(count):
        word = str(rng.choice(WORDS))
        path = folder / f"{word}-{number}.wav"
        write_recording(path, play(word, rng))
        found.append((path, word))
    return found
