"""Streams of spoken digits: strings of 3 to 7 digits by one speaker, made from `fsdd`.

    python benchmarks/digit_strings.py make runs/digits            # strings.csv and its recordings
    glassformer train transcribe runs/digits/strings.csv --set task.stream.chunk=0.4 ...
    python benchmarks/digit_strings.py score runs/strings runs/digits/strings.csv

`make` joins recordings of each split of fsdd, with 50 to 300 ms of faint noise between them.
`score` streams the test rows through a run, and joins them to one long recording, with half a
second of noise between two of them, which it streams and reads in pieces.
"""

import csv
import sys
import wave
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import glassformer
from glassformer.config import DataConfig
from glassformer.data.audio.reading import read_audio
from glassformer.data.ingest import ingest
from glassformer.metrics.error_rates import word_error_rate
from glassformer.metrics.translation import measure_translations, translation_scores
from glassformer.tasks import JOBS
from glassformer.terminal import print_line

RATE = 8000
ROWS = {"train": 1000, "valid": 100, "test": 100}
PAUSE = (400, 2400)  # samples


def make(folder: Path) -> None:
    """Write the strings and their table."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = JOBS["transcribe"].schema
    samples, _ = ingest(DataConfig(files=("fsdd",)), schema, folder / "fsdd", seed=0)
    clips = defaultdict(list)
    for split in ROWS:
        for sample in samples.of(split):
            speaker = Path(sample["path"]).stem.split("_")[1]
            clips[split, speaker].append((sample["text"], read_audio(sample["path"], RATE)))
    rng, speakers = np.random.default_rng(0), sorted({speaker for _, speaker in clips})
    rows = [("path", "text", "split")]
    for split, count in ROWS.items():
        for number in range(count):
            some, words, sound = clips[split, speakers[number % len(speakers)]], [], [noise(rng)]
            for _ in range(rng.integers(3, 8)):
                text, clip = some[rng.integers(len(some))]
                words.append(text)
                sound += [clip, noise(rng)]
            rows.append((f"{split}{number}.wav", " ".join(words), split))
            write(folder / rows[-1][0], np.concatenate(sound))
    with (folder / "strings.csv").open("w", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def noise(rng: np.random.Generator, samples: int = 0) -> np.ndarray:
    return rng.normal(0, 0.001, samples or rng.integers(*PAUSE)).astype(np.float32)


def write(path: Path, sound: np.ndarray) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((np.clip(sound, -1, 1) * (2**15 - 1)).astype("<i2").tobytes())


def score(run: str, table: Path) -> None:
    """Word error rates on the test rows."""
    loaded = glassformer.load(run)
    with table.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
    paths, texts = [table.parent / row["path"] for row in rows], [row["text"] for row in rows]
    show("read as a whole", [loaded.predict(path).text for path in paths], texts)
    long, pause = table.parent / "long.wav", noise(np.random.default_rng(1), RATE // 2)
    sounds = [one for path in paths for one in (read_audio(path, RATE), pause)]
    write(long, np.concatenate(sounds))
    show("one long recording, in pieces", [loaded.predict(long).text], [" ".join(texts)])
    if loaded.task.settings.stream.chunk:
        show("streams", [loaded.predict(path, stream=True).text for path in paths], texts)
        found: Any = loaded.predict(long, stream=True)
        show("one long stream", [found.text], [" ".join(texts)])
        print_line(found.note)


def show(what: str, written: list[str], right: list[str]) -> None:
    measured = measure_translations(written, [[one] for one in right], {"wer": word_error_rate})
    print_line(what, str(translation_scores(measured)["wer"]))


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]))
    else:
        score(sys.argv[2], Path(sys.argv[3]))
