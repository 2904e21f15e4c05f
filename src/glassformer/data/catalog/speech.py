"""Speech: AN4, spelled addresses and control words; FSDD, spoken digits.

`audio` is the path of a file. Archives are unpacked once, into the cache.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from glassformer.data.catalog.archives import unpacked
from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import Row
from glassformer.data.sources import read_rows
from glassformer.data.sources.decoding import lines
from glassformer.errors import GlassformerError

SPHERE = "an4_sphere.tar.gz"
FLAC = "an4_flac.tar"
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TESTED = 5  # recordings of each digit by each speaker, the first ones
COMMIT = "26eb9aaf76e81b692f806f9140c2d2777410d7a1"
RECORDINGS = f"free-spoken-digit-dataset-{COMMIT}.tar.gz"
UTTERANCE = r"<s>(?P<text>.*)</s> \((?P<name>[\w-]+)\)"

AN4_STORAGE = Storage(
    "an4",
    ((FLAC, "manifest.tsv"), (SPHERE,)),
    (
        Remote(
            name=SPHERE,
            url="https://dldata-public.s3.us-east-2.amazonaws.com/an4_sphere.tar.gz",
            checksum="sha256:a0525579493735d32b60fb6fa5975dd0eaacde087b0a4eeb7f13b7ef33077b12",
        ),
    ),
)
FSDD_STORAGE = Storage(
    "fsdd",
    (("fsdd_recordings_wav.tar.xz",), (RECORDINGS,)),
    (
        Remote(
            name=RECORDINGS,
            url=f"https://codeload.github.com/Jakobovski/free-spoken-digit-dataset/tar.gz/{COMMIT}",
        ),
    ),
)


def utterances() -> Iterator[Row]:
    """Utterances of 84 speakers; those of the test split are in no other."""
    files = AN4_STORAGE.files("an4")
    if FLAC not in files:
        yield from _as_published(unpacked(files[SPHERE], ""))
        return
    folder = unpacked(files[FLAC], ".flac")
    for row in read_rows(files["manifest.tsv"]):
        columns = {name: row[name] for name in ("text", "speaker", "split")}
        audio = _there(folder / row["path"], row.where)
        yield Row({"audio": audio, **columns}, row.file, row.number, row.line)


def _as_published(folder: Path) -> Iterator[Row]:
    """Transcripts in one file a split, and in another the paths of what they are of."""
    home = folder / "an4"
    for split in ("train", "test"):
        transcripts = home / "etc" / f"an4_{split}.transcription"
        paths = lines(home / "etc" / f"an4_{split}.fileids")
        where = {Path(line.strip()).name: line.strip() for line in paths}
        for number, line in enumerate(lines(transcripts), start=1):
            found = re.fullmatch(UTTERANCE, line.strip())
            if found is None or found["name"] not in where:
                raise GlassformerError(
                    f"{transcripts} line {number}: not a transcript of a listed recording; remove "
                    f"the archive and fetch it again"
                )
            path = where[found["name"]]
            row = {
                "audio": _there(home / "wav" / f"{path}.sph", f"{transcripts} line {number}"),
                "text": found["text"].strip(),
                "speaker": Path(path).parent.name,
                "split": split,
            }
            yield Row(row, str(transcripts), number)


def digits() -> Iterator[Row]:
    """Six speakers, ten digits, fifty times each; the first five times are the test split."""
    archive = next(iter(FSDD_STORAGE.files("fsdd").values()))
    recordings = [
        (re.fullmatch(r"(?P<digit>\d)_(?P<speaker>[^_]+)_(?P<take>\d+)", path.stem), path)
        for path in sorted(unpacked(archive, ".wav").rglob("*.wav"))
    ]
    number = 0
    for name, path in recordings:
        if name is not None:
            number += 1
            row = {
                "audio": str(path),
                "text": DIGITS[int(name["digit"])],
                "label": name["digit"],
                "speaker": name["speaker"],
                "split": "test" if int(name["take"]) < TESTED else "train",
            }
            yield Row(row, str(archive), number)


def _there(audio: Path, where: str) -> str:
    if not audio.is_file():
        raise GlassformerError(
            f"{where}: {audio} is not in the archive; remove the archive and fetch it again"
        )
    return str(audio)


AN4 = Entry(
    name="an4",
    what="spoken letters, digits and control words, 16 kHz, 0.8 hours, 84 speakers; CMU, 1991",
    licence="free for any purpose, BSD style, Carnegie Mellon University",
    source="http://www.speech.cs.cmu.edu/databases/an4/",
    rows=utterances,
    group="speaker",
    storage=AN4_STORAGE,
)
FSDD = Entry(
    name="fsdd",
    what="spoken digits, 8 kHz, 3,000 recordings of six speakers, who are in both splits",
    licence="CC BY-SA 4.0",
    source="https://github.com/Jakobovski/free-spoken-digit-dataset",
    rows=digits,
    storage=FSDD_STORAGE,
)
