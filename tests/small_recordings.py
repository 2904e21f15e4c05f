"""Recordings of words for the tests of speech: a tone of its own pitch for every letter."""

import wave

import numpy as np

RATE = 8000
PITCHES = {letter: 250 + 310 * number for number, letter in enumerate("abcde")}
WORDS = ("ad", "bad", "cab", "ace", "bead", "abba", "decade")
SETTINGS = {
    "model": {
        "frontend": {"bins": 20},
        "encoder": {"dim": 24, "depth": 1, "dropout": 0.0, "attention": {"heads": 2}},
        "decoder": {"dim": 24, "depth": 1, "dropout": 0.0, "attention": {"heads": 2}},
    },
    "task": {"rate": RATE, "masking": {"frequencies": 0, "times": 0}},
}


def play(text, rng):
    """The tones of a text, each of another length and volume, with pauses and noise."""
    pieces = [np.zeros(rng.integers(200, 400))]
    for letter in text:
        time = np.arange(rng.integers(700, 1000)) / RATE
        pitch = PITCHES.get(letter, 0)  # a blank is silent
        pieces.append(rng.uniform(0.3, 0.6) * np.sin(2 * np.pi * pitch * time))
        pieces.append(np.zeros(rng.integers(150, 300)))
    sound = np.concatenate(pieces)
    return (sound + rng.normal(0, 0.01, len(sound))).astype(np.float32)


def write_wave(path, sound, rate=RATE):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.clip(sound, -1, 1) * (2**15 - 1)).astype("<i2").tobytes())
    return path


def record(folder, texts, seed=0):
    """A recording of each text, as rows of a table."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    return [
        {"path": str(write_wave(folder / f"{number}.wav", play(text, rng))), "text": text}
        for number, text in enumerate(texts)
    ]


def write_table(path, rows):
    lines = [f"{row['path']},{row['text']}" for row in rows]
    path.write_text("\n".join(["path,text", *lines]), encoding="utf-8")
    return path
