"""Morse code in noise: recordings made with numpy, the same at every call, kept in the cache.

Texts are words without meaning, groups of letters, numbers and call signs. Each operator has one
speed and habits of keying. No text and no speed is in two splits. Training recordings have little
noise, so that more can be added, anew in each epoch; the other splits have HELD_OUT_SNR, and longer
texts.
"""

import random
import wave
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase, digits

import numpy as np

from glassformer.data.audio.morse import CODE, Keying, seconds_of, send
from glassformer.data.catalog.storage import Entry, writing
from glassformer.data.rows import Row
from glassformer.data.sources import read_rows
from glassformer.files import cache_folder, locked, replacing, to_json

VERSION = 5  # of the recordings: what is in the cache is made again when it changes
CLIPS = {"train": 6000, "valid": 150, "test": 200}
OPERATORS = 4  # of each speed
SPEEDS = {
    "train": [wpm for wpm in range(14, 33) if wpm % 5 not in (0, 3)],
    "valid": [15, 20, 25, 30],
    "test": [18, 23, 28],
}  # words a minute
SNRS = (10.0, 20.0)  # dB, of training recordings
HELD_OUT_SNR = 0.0
PITCHES = (500.0, 700.0)  # Hz
SECONDS = {"train": (1.6, 2.2), "valid": (3.0, 6.0), "test": (3.0, 6.0)}  # keyed perfectly
RATE = 2000
PUNCTUATION = "".join(c for c in CODE if not c.isalnum())
TABLE = "morse.jsonl"


@dataclass(frozen=True, slots=True)
class Clip:
    """A text and how it is sent; `seed` decides about all that is left to chance."""

    text: str
    keying: Keying
    operator: str
    split: str
    seed: int

    def samples(self) -> np.ndarray:
        """The sound, as 16-bit integers."""
        rng = np.random.default_rng(self.seed)
        sound = send(self.text, self.keying, rate=RATE, rng=rng)
        return np.round(sound * (2**15 - 1)).astype("<i2")


def clips() -> Iterator[Clip]:
    """The recordings of texts, split by split."""
    rng, earlier = random.Random(0), set[str]()
    for split, count in CLIPS.items():
        texts = set()
        for keying, operator, seed in keyed(split, count, rng):
            while (text := draw_text(SECONDS[split], keying.wpm, rng)) in earlier:
                pass
            texts.add(text)
            yield Clip(text, keying, operator, split, seed)
        earlier |= texts


def keyed(split: str, count: int, rng: random.Random) -> Iterator[tuple[Keying, str, int]]:
    """How each recording of a split is keyed, by whom, and its seed."""
    operators = [draw_operator(wpm, rng) for wpm in SPEEDS[split] for _ in range(OPERATORS)]
    for _ in range(count):
        number = rng.randrange(len(operators))
        keying = replace(
            operators[number],
            pitch=rng.uniform(*PITCHES),
            fading=rng.uniform(0, 6),
            snr=round(rng.uniform(*SNRS), 1) if split == "train" else HELD_OUT_SNR,
        )
        yield keying, f"{split} {number}", rng.getrandbits(32)


def draw_operator(wpm: int, rng: random.Random) -> Keying:
    """Someone's way of keying."""
    return Keying(
        wpm=wpm,
        dash=rng.uniform(2.7, 3.5),
        spacing=rng.uniform(0.95, 1.25),
        jitter=rng.uniform(0.03, 0.12),
    )


def draw_text(limits: tuple[float, float], wpm: int, rng: random.Random) -> str:
    """Words, cut off after some seconds."""
    seconds, text = rng.uniform(*limits), draw_word(rng)
    while seconds_of(text, wpm) < seconds:
        text += f" {draw_word(rng)}"
    while len(text) > 1 and seconds_of(text, wpm) > seconds:
        text = text[:-1]
    return text.strip()


def draw_word(rng: random.Random) -> str:
    """A word, a group of any characters, a number or a call sign."""
    kind = rng.choices(("word", "group", "number", "call"), (3, 4, 2, 1))[0]
    if kind == "word":
        pairs = rng.randint(1, 2)
        word = "".join(rng.choice("BCDFGHKLMNPRSTVWZ") + rng.choice("AEIOUY") for _ in range(pairs))
        return word + rng.choice(("", *"LMNRST", *PUNCTUATION))
    if kind == "group":
        return draw("".join(CODE), 1, 5, rng)
    if kind == "number":
        return draw(digits, 1, 4, rng)
    return draw(ascii_uppercase, 1, 2, rng) + rng.choice(digits) + draw(ascii_uppercase, 1, 3, rng)


def draw(characters: str, fewest: int, most: int, rng: random.Random) -> str:
    """Some characters, all equally likely."""
    return "".join(rng.choices(characters, k=rng.randint(fewest, most)))


def rows_of() -> Iterator[Row]:
    """The recordings and texts; they are made by the first call."""
    table = recordings() / TABLE
    for row in read_rows(table):
        yield Row(
            {**row.values, "audio": str(table.parent / row["audio"])},
            row.file,
            row.number,
            row.line,
        )


def recordings() -> Path:
    """The folder with the recordings and a table of them, which appears when it is complete."""
    folder = cache_folder() / "data" / f"morse-{VERSION}"
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent, wait=True):
            if not folder.is_dir():
                with replacing(folder) as half:
                    write_recordings(half)
    return folder


def write_recordings(folder: Path) -> None:
    """Recordings, and the table that lists them."""
    folder.mkdir()
    lines = []
    for number, clip in enumerate(clips(), start=1):
        name = f"{clip.split}-{number:04}.wav"
        with wave.open(str(folder / name), "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(clip.samples().tobytes())
        values = {"audio": name, "text": clip.text, "operator": clip.operator}
        facts = {"wpm": clip.keying.wpm, "snr": clip.keying.snr, "split": clip.split}
        lines.append(to_json(values | facts))
    (folder / TABLE).write_text("\n".join(lines) + "\n", encoding="utf-8")


MORSE = Entry(
    name="morse",
    what="Morse code in noise, 6,350 recordings of many speeds; built in",
    licence="CC0, made by this program",
    source="https://www.itu.int/rec/R-REC-M.1677-1-200910-I/",
    rows=rows_of,
    group="operator",
)
