"""Tatoeba: short sentences and their translations by volunteers, as packaged for Anki.

There is no official split. A sentence has several translations, so rows are grouped by the English
side, in `english`. The files at the source grow over time: a download may differ from the record.
"""

import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from glassformer.data.catalog.archives import members
from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import Row
from glassformer.data.splits import content_key
from glassformer.errors import GlassformerError

CODES = {"zh": ("cmn", "Chinese"), "de": ("deu", "German"), "fr": ("fra", "French")}


def sentences(name: str, storage: Storage, language: str, *, from_english: bool) -> Iterator[Row]:
    """One row per pair; a pair may occur twice."""
    archive = next(iter(storage.files(name).values()))
    for number, (english, other) in enumerate(_pairs(archive, CODES[language][0]), start=1):
        source, target = (english, other) if from_english else (other, english)
        values = {"source": source, "target": target, "split": "", "english": content_key(english)}
        yield Row(values, str(archive), number)


def _pairs(archive: Path, code: str) -> Iterator[tuple[str, str]]:
    """English and the other language: lines with a tab between, and what comes after it."""
    for name, content in members(archive, f"{code}.txt"):
        if Path(name).name != f"{code}.txt":
            continue
        for number, line in enumerate(io.StringIO(content.decode()), start=1):
            english, tab, rest = line.rstrip("\r\n").partition("\t")
            if not tab:
                raise GlassformerError(
                    f"{archive}, {name} line {number}: no tab between two sentences; remove the "
                    f"archive and fetch it again"
                )
            yield english, rest.split("\t")[0]
        return
    raise GlassformerError(
        f"{archive}: {code}.txt is missing; remove the archive and fetch it again"
    )


def entry(language: str, *, from_english: bool) -> Entry:
    """The set for one direction."""
    code, other = CODES[language]
    storage = Storage(
        "tatoeba",
        ((f"{code}-eng.zip",),),
        (Remote(name=f"{code}-eng.zip", url=f"https://www.manythings.org/anki/{code}-eng.zip"),),
    )
    name = f"tatoeba-en-{language}" if from_english else f"tatoeba-{language}-en"
    direction = f"English to {other}" if from_english else f"{other} to English"
    return Entry(
        name=name,
        what=f"short sentences, {direction}",
        licence="CC BY 2.0 (France), attribution to tatoeba.org and manythings.org/anki",
        source="https://www.manythings.org/anki/",
        rows=partial(sentences, name, storage, language, from_english=from_english),
        group="english",
        storage=storage,
    )


TATOEBA = [
    entry(language, from_english=from_english)
    for language in CODES
    for from_english in (False, True)
]
