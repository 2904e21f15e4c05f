"""CMUdict: English words and their pronunciation in 39 phonemes; the split of CNTK's example.

A training row is a word and one of its pronunciations; a test row is a word with the first of them.
`references` lists all pronunciations in the split: an answer that equals any of them is correct. No
test word is in another split; some validation words are in train with another pronunciation.
"""

from collections import defaultdict
from collections.abc import Iterator

from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import Row
from glassformer.data.sources.decoding import lines
from glassformer.errors import GlassformerError

FILE_OF = {
    "train": "cmudict-0.7b.train-dev-20-21",
    "valid": "cmudict-0.7b.train-dev-1-21",
    "test": "cmudict-0.7b.test",
}
ADDRESS = (
    "https://raw.githubusercontent.com/microsoft/CNTK/"
    "10a8ffcf50d7b9225f3236ffcfdc422b2014fb92/Examples/SequenceToSequence/CMUDict/Data/"
)
FILES = {
    "train": (2_714_997, "61faa823e4a4bc64401522eb68db9543d33ee6f10dcacf5be65b1ef5fe08b6f3"),
    "valid": (136_085, "c8bbfb8d57d8e0c1d2ce6fbc8891325fc4570ac2b9ae068088bc59e804a9c295"),
    "test": (321_219, "ece787fd3d88c7b130d43e7c2307ac11e6dfb4c052d661c37808ec7ed1df8574"),
}  # bytes and SHA-256
STORAGE = Storage(
    "cmudict_g2p",
    (tuple(FILE_OF.values()),),
    tuple(
        Remote(
            name=FILE_OF[split],
            url=ADDRESS + FILE_OF[split],
            size=size,
            checksum=f"sha256:{checksum}",
            verified=True,
        )
        for split, (size, checksum) in FILES.items()
    ),
)


def pronunciations() -> Iterator[Row]:
    """Words and phonemes, split by split."""
    files = STORAGE.files("cmudict")
    for split, name in FILE_OF.items():
        known: defaultdict[str, list[str]] = defaultdict(list)
        first: dict[str, int] = {}
        for number, line in enumerate(lines(files[name], newline="\n"), start=1):
            word, _, phonemes = line.strip().partition("  ")
            if not phonemes:
                raise GlassformerError(
                    f"{files[name]} line {number}: no two spaces between a word and its phonemes; "
                    f"fetch the file again"
                )
            known[word].append(phonemes)
            first.setdefault(word, number)
        for word, ways in known.items():
            for way in ways if split == "train" else ways[:1]:
                values = {"source": word, "target": way, "references": ways, "split": split}
                yield Row(values, str(files[name]), first[word])


CMUDICT = Entry(
    name="cmudict",
    what="English words to phonemes, the whole of CMUdict 0.7b, stress left out",
    licence="BSD 2-clause style, Carnegie Mellon University",
    source="http://www.speech.cs.cmu.edu/cgi-bin/cmudict",
    rows=pronunciations,
    storage=STORAGE,
)
