"""Whether rows match the record: their number and a fingerprint.

The record was computed from complete copies. A set whose files grow over time, or whose archive is
rebuilt at every download, can be checked by its rows where no checksum applies.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b

from glassformer.data.rows import Row

CHECKED = ("text", "label", "source", "target", "split")  # columns; paths differ by machine


@dataclass(frozen=True, slots=True)
class Counted:
    """Rows by split ("" if not chosen yet), and their fingerprint."""

    counts: Mapping[str, int]
    fingerprint: str

    @property
    def total(self) -> int:
        """All rows."""
        return sum(self.counts.values())


def count(rows: Iterable[Row]) -> Counted:
    """Count all rows; the fingerprint does not depend on their order."""
    counts: Counter[str] = Counter()
    digests = []
    for row in rows:
        counts[row["split"]] += 1
        values = json.dumps([row[name] for name in CHECKED], ensure_ascii=False)
        digests.append(blake2b(values.encode("utf-8", "replace"), digest_size=8).digest())
    return Counted(dict(counts), blake2b(b"".join(sorted(digests)), digest_size=8).hexdigest())


def verdict(name: str, found: Counted) -> str:
    """How the rows of a set compare with the record, in a sentence."""
    known = RECORDED.get(name)
    if known is None:
        return f"{found.total:,} rows; there is no record to compare with"
    if known.fingerprint == found.fingerprint:
        return f"{found.total:,} rows, matching the record"
    return f"{found.total:,} rows, different from the {known.total:,} on record: scores may differ"


RECORDED: dict[str, Counted] = {
    "morse": Counted({"train": 6_000, "valid": 150, "test": 200}, "130b1787a99ebc61"),
    "imdb": Counted({"train": 25_000, "test": 25_000}, "a633f195c5d0b510"),
    "imdb-unlabelled": Counted({"": 50_000}, "0ae3410a293791a5"),
    "trec": Counted({"train": 5_452, "test": 500}, "01483dd86d27ec9d"),
    "mr": Counted({"": 10_662}, "30674f4be4fa8b2e"),
    "subj": Counted({"": 10_000}, "75eedfa971c2c264"),
    "cr": Counted({"": 3_775}, "ecd93d8659a5df0c"),
    "mpqa": Counted({"": 10_606}, "b7c48d54fab5581d"),
    "multi30k-en-de": Counted({"train": 29_000, "valid": 1_014, "test": 1_000}, "4cc6e7c8ab6dcb53"),
    "multi30k-de-en": Counted({"train": 29_000, "valid": 1_014, "test": 1_000}, "0749325807971518"),
    "multi30k-en-fr": Counted({"train": 29_000, "valid": 1_014, "test": 1_000}, "368ba574d66cddbf"),
    "multi30k-fr-en": Counted({"train": 29_000, "valid": 1_014, "test": 1_000}, "13bde8939501b2bf"),
    "multi30k-en-cs": Counted({"train": 29_000, "valid": 1_014, "test": 1_000}, "5930b9db0d88cc26"),
    "multi30k-cs-en": Counted({"train": 29_000, "valid": 1_014, "test": 1_000}, "ce43cf14930d690e"),
    "multi30k-2017-en-de": Counted({"test": 1_000}, "3c2ff3a8991edeb8"),
    "multi30k-2017-de-en": Counted({"test": 1_000}, "a9e967c7fba1d1a3"),
    "multi30k-2017-en-fr": Counted({"test": 1_000}, "a16e20ea92c8acfd"),
    "multi30k-2017-fr-en": Counted({"test": 1_000}, "9c4a73639f199e7e"),
    "tatoeba-zh-en": Counted({"": 24_818}, "e5f090fbf3a91359"),
    "tatoeba-en-zh": Counted({"": 24_818}, "a885b53bc4b6889e"),
    "tatoeba-de-en": Counted({"": 169_197}, "e5b0caee94c6adaf"),
    "tatoeba-en-de": Counted({"": 169_197}, "504dbf15c7fefddc"),
    "tatoeba-fr-en": Counted({"": 167_130}, "03c7eaae3cdfd9a0"),
    "tatoeba-en-fr": Counted({"": 167_130}, "ed0818310b7b6b7b"),
    "digits": Counted({"train": 1_438, "test": 359}, "0523bd09f6c8e300"),
    "mnist": Counted({"train": 60_000, "test": 10_000}, "30664cb5be5236af"),
    "cifar10": Counted(
        {"train": 50_000, "test": 10_000}, "fbc7c7ff55a727e8"
    ),  # of its labels alone
    "cmudict": Counted({"train": 108_952, "valid": 5_447, "test": 11_994}, "428103a37caeee6c"),
    "an4": Counted({"train": 948, "test": 130}, "40b27d6177b9f7ab"),
    "fsdd": Counted({"train": 2_700, "test": 300}, "233a7c1ddf38d488"),
    "tinyshakespeare": Counted({"train": 1, "valid": 1}, "b01c8ffae818661f"),
    "tang-poetry": Counted({"": 57_607}, "8bedb6ecd5ba52f8"),
}
