"""Tiny files of every shape that docs/data.md describes."""

import csv
import gzip
import json
import random
from pathlib import Path

import numpy as np
from PIL import Image
from small_images import pixels_of
from small_recordings import WORDS, play, write_wave

MOODS = {"good": ("great", "lovely", "warm"), "bad": ("dull", "awful", "weak")}
WORDS_OF_ALL = ("the", "film", "was", "a", "story", "with", "some", "people", "dog", "town")
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
ZAHLEN = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")


def sentences(count: int, seed: int = 1) -> list[dict[str, str]]:
    """Texts with a label, a film and a tag or two."""
    rng = random.Random(seed)
    rows = []
    for number in range(count):
        label = ("good", "bad")[number % 2]
        text = [*rng.choices(WORDS_OF_ALL, k=7), *rng.choices(MOODS[label], k=2), str(number)]
        tags = label if number % 3 else f"{label}|long"
        rows.append(
            {"text": " ".join(text), "label": label, "film": f"f{number % 23}", "tags": tags}
        )
    return rows


def table(path: Path, rows: list[dict[str, str]], *columns: str, delimiter: str = ",") -> None:
    """A table of these columns; of all of them if none are named."""
    names = columns or tuple(rows[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([names, *([row[name] for name in names] for row in rows)])


def write(path: Path, *lines: str) -> None:
    """A text file of these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def objects(path: Path, rows: list[dict[str, object]]) -> None:
    """A file of JSON Lines."""
    write(path, *(json.dumps(row, ensure_ascii=False) for row in rows))


def write_texts() -> None:
    """What `classify`, `pretrain` and `generate` read."""
    rows = sentences(60)
    table(Path("reviews.csv"), rows, "text", "label")
    Path("reviews.csv.gz").write_bytes(gzip.compress(Path("reviews.csv").read_bytes()))
    table(Path("survey.csv"), [{"stars": r["label"], "comment": r["text"]} for r in rows])
    objects(Path("reviews.jsonl"), [{"text": r["text"], "label": r["label"]} for r in rows])
    objects(Path("tagged.jsonl"), [r | {"tags": r["tags"].split("|")} for r in rows])
    table(Path("tagged.csv"), rows, "text", "tags")
    table(Path("films.csv"), rows, "text", "label", "film")
    splits = ("train", "train", "train", "valid", "test")
    table(Path("split.csv"), [r | {"split": splits[n // 2 % 5]} for n, r in enumerate(rows)])
    bare = [f'"{r["text"]}",{r["label"]}' for r in rows]
    write(Path("bare.csv"), *bare)
    for name, start in (("test.csv", 2), ("valid.csv", 3), ("new.csv", 8), ("others.csv", 9)):
        table(Path(name), sentences(20, seed=start), "text", "label")
    for number, row in enumerate(rows):
        write(Path("reviews") / row["label"] / f"{number}.txt", row["text"])
    write(Path("more.txt"), *(row["text"] for row in sentences(40, seed=4)))
    write(Path("book.txt"), *(row["text"] for row in sentences(400, seed=5)))
    for number in range(25):
        write(Path("books") / f"{number}.txt", *(r["text"] for r in sentences(20, seed=number)))
    messy = [*sentences(40, seed=6), *sentences(4, seed=6), {"text": " ", "label": "good"}]
    messy[3] |= {"label": "Bad "}
    table(Path("messy.csv"), messy, "text", "label")


def write_pairs() -> None:
    """What `translate` reads."""
    rng = random.Random(7)
    rows = [[rng.randrange(10) for _ in range(3)] for _ in range(80)]
    sides = [[" ".join(names[n] for n in row) for row in rows] for names in (NUMBERS, ZAHLEN)]
    write(Path("train.en"), *sides[0])
    write(Path("train.de"), *sides[1])
    write(Path("test.en"), *sides[0][:9])
    write(Path("test.de"), *sides[1][:9])
    pairs = [{"source": a, "target": b} for a, b in zip(*sides, strict=True)]
    table(Path("pairs.tsv"), pairs, delimiter="\t")
    table(Path("three.csv"), [{"en": p["source"], "de": p["target"], "note": "x"} for p in pairs])
    to = [p | {"to": "de"} for p in pairs] + [
        {"source": b, "target": a, "to": "en"} for a, b in zip(*sides, strict=True)
    ]
    table(Path("languages.csv"), to)
    refs = [{"source": p["source"], "references": [p["target"], p["target"] + " !"]} for p in pairs]
    objects(Path("references.jsonl"), refs)
    units = (
        f'<tu><tuv xml:lang="en"><seg>{a}</seg></tuv><tuv xml:lang="de"><seg>{b}</seg></tuv></tu>'
        for a, b in zip(*sides, strict=True)
    )
    write(
        Path("memory.tmx"),
        '<tmx version="1.4"><header srclang="en"/><body>',
        *units,
        "</body></tmx>",
    )


def write_recordings() -> None:
    """What `transcribe` and `classify` read: the same sounds in every layout."""
    rng = np.random.default_rng(0)
    names = [f"{number}" for number in range(24)]
    texts = [" ".join(rng.choice(WORDS, 2)) for _ in names]
    sounds = [play(text.replace(" ", ""), rng) for text in texts]

    def record(folder: str, names: list[str]) -> list[str]:
        Path(folder).mkdir(parents=True, exist_ok=True)
        paths = [Path(folder) / f"{name}.wav" for name in names]
        return [str(write_wave(*pair)) for pair in zip(paths, sounds, strict=True)]

    paths = record("recordings", names)
    for name, text in zip(names, texts, strict=True):
        write(Path("recordings") / f"{name}.txt", text)
    rows = [{"path": p, "text": t} for p, t in zip(paths, texts, strict=True)]
    table(Path("recordings.csv"), rows)
    keys = [f"19-{198 + n % 2}-{n:04}" for n in range(24)]
    for chapter in ("198", "199"):
        folder = Path("LibriSpeech/train-clean-5/19") / chapter
        chosen = [n for n, key in enumerate(keys) if key.split("-")[1] == chapter]
        folder.mkdir(parents=True)
        for n in chosen:
            write_wave(folder / f"{keys[n]}.wav", sounds[n])
        write(
            folder / f"19-{chapter}.trans.txt", *(f"{keys[n]} {texts[n].upper()}" for n in chosen)
        )
    wavs = record("kaldi/wavs", names)
    write(Path("kaldi/wav.scp"), *(f"u{n} wavs/{n}.wav" for n in names))
    write(Path("kaldi/text"), *(f"u{n} {t}" for n, t in zip(names, texts, strict=True)))
    write(Path("kaldi/utt2spk"), *(f"u{n} s{int(n) % 3}" for n in names))
    record("cv/en/clips", names)
    voices = [
        {"client_id": f"c{n}", "path": f"{n}.wav", "sentence": t}
        for n, t in zip(names, texts, strict=True)
    ]
    table(Path("cv/en/validated.tsv"), voices, delimiter="\t")
    record("LJSpeech-1.1/wavs", names)
    lines = (f"{n}|{t}|{t}" for n, t in zip(names, texts, strict=True))
    write(Path("LJSpeech-1.1/metadata.csv"), *lines)
    for n, sound in enumerate(sounds):
        folder = Path("commands") / ("yes", "no")[n % 2]
        folder.mkdir(parents=True, exist_ok=True)
        write_wave(folder / f"{n}.wav", sound)
    clips = [{"path": p, "label": ("yes", "no")[n % 2]} for n, p in enumerate(wavs)]
    table(Path("clips.csv"), clips)


def write_images() -> None:
    """What `recognise` reads."""
    rng, rows = np.random.default_rng(0), []
    for label in ("dark", "left"):
        for number in range(24):
            path = Path("photos") / label / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels_of(label, rng)).save(path)
            rows.append({"path": str(path), "label": label})
    table(Path("photos.csv"), rows)
    for start, count in (("train", 40), ("t10k", 20)):
        pixels = rng.integers(0, 255, (count, 8, 8), dtype=np.uint8)
        labels = np.arange(count, dtype=np.uint8) % 2
        for name, array, axes in (("images-idx3", pixels, 3), ("labels-idx1", labels, 1)):
            head = bytes((0, 0, 8, axes)) + np.array(array.shape, ">u4").tobytes()
            path = Path("mnist") / f"{start}-{name}-ubyte"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(head + array.tobytes())


def write_ratings() -> None:
    """What `recommend` reads."""
    rng = random.Random(8)
    rows = [
        {
            "user": f"u{u}",
            "item": f"i{i}",
            "rating": str(4 + (u + i) % 2 - 2 * (i % 2)),
            "time": str(60 * u + i),
        }
        for u in range(23)
        for i in rng.sample(range(14), 9)
    ]
    table(Path("ratings.csv"), rows, "user", "item", "rating")
    table(Path("purchases.csv"), rows, "user", "item", "time")


def write_all() -> None:
    """Every file, in the current folder."""
    for some in (write_texts, write_pairs, write_recordings, write_images, write_ratings):
        some()
