"""Texts for language modelling: Tiny Shakespeare, and the complete Tang poems."""

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from glassformer.data.catalog.archives import members
from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import CONTINUED, Row
from glassformer.data.sources.decoding import document
from glassformer.errors import GlassformerError

LEARNED = 0.9  # of the characters; the rest is for validation, as is customary for this text
PACKED = "quantangshi_json.tar.xz"
POETS = tuple(f"poet.tang.{number}.json" for number in range(0, 58_000, 1_000))
POEMS = (
    "https://raw.githubusercontent.com/chinese-poetry/chinese-poetry/"
    f"99ebbef7e1345c0985c44b9fd96a3f9e776f117b/{quote('全唐诗')}/"
)

PLAYS_STORAGE = Storage(
    "tinyshakespeare",
    (("input.txt",),),
    (
        Remote(
            name="input.txt",
            url="https://raw.githubusercontent.com/karpathy/char-rnn/"
            "6f9487a6fe5b420b7ca9afb0d7c078e37c1d1b4e/data/tinyshakespeare/input.txt",
            size=1_115_394,
            checksum="sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
            verified=True,
        ),
    ),
)
POEMS_STORAGE = Storage(
    "chinese_poetry",
    ((PACKED,), POETS),
    tuple(Remote(name=name, url=POEMS + name) for name in POETS),
)


def plays() -> Iterator[Row]:
    """The first part of the text, and the rest."""
    path = PLAYS_STORAGE.files("tinyshakespeare")["input.txt"]
    text = document(path)
    end = int(LEARNED * len(text))
    yield Row({"text": text[:end], "split": "train", CONTINUED: "yes"}, str(path), 1)
    yield Row({"text": text[end:], "split": "valid"}, str(path), 2)


def poems() -> Iterator[Row]:
    """One row per poem, with line breaks; there is no official split."""
    for where, content in _collections(POEMS_STORAGE.files("tang-poetry")):
        try:
            found = [
                (poem["author"], poem["title"], poem["paragraphs"]) for poem in json.loads(content)
            ]
        except (ValueError, KeyError, TypeError) as error:
            raise GlassformerError(
                f"{where}: not a list of poems ({error}); remove it and fetch it again"
            ) from None
        for number, (author, title, paragraphs) in enumerate(found, start=1):
            values = {"text": "\n".join(paragraphs), "title": title, "author": author, "split": ""}
            yield Row(values, where, number)


def _collections(files: dict[str, Path]) -> Iterator[tuple[str, bytes]]:
    """The files of poems, a thousand in each, in order."""
    if PACKED not in files:
        yield from ((str(path), path.read_bytes()) for path in files.values())
        return
    archive = files[PACKED]
    found = {Path(name).name: content for name, content in members(archive, ".json")}
    for name in POETS:
        if name not in found:
            raise GlassformerError(f"{archive}: {name} is missing; fetch or pack it again")
        yield f"{archive}, {name}", found[name]


TINY_SHAKESPEARE = Entry(
    name="tinyshakespeare",
    what="1.1 MB of Shakespeare's plays, the last tenth for validation; Karpathy, 2015",
    licence="public domain",
    source="https://github.com/karpathy/char-rnn",
    rows=plays,
    storage=PLAYS_STORAGE,
)
TANG_POETRY = Entry(
    name="tang-poetry",
    what="the complete Tang poems, 57,607 of them, in traditional characters",
    licence="MIT",
    source="https://github.com/chinese-poetry/chinese-poetry",
    rows=poems,
    storage=POEMS_STORAGE,
)
