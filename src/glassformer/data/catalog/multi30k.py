"""Multi30k: English image captions and their translations. Elliott et al., 2016.

One entry per direction, such as `multi30k-en-de`, with the 2016 test split. The 2017 test set has
its own entries, such as `multi30k-2017-en-de`, for evaluation.
"""

from collections.abc import Iterator
from functools import partial

from glassformer.data.catalog.storage import Entry, Remote, Storage
from glassformer.data.rows import Row
from glassformer.data.sources.parallel import read_parallel

LANGUAGES = {"de": "German", "fr": "French", "cs": "Czech"}  # each beside English
SPLIT_OF = {"train": "train", "val": "valid", "test_2016_flickr": "test"}
LATER = {"test_2017_flickr": "test"}
ADDRESS = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
)
FILES = """
test_2016_flickr.cs 22572 200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1
test_2016_flickr.de 22890 9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8
test_2016_flickr.en 21077 611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9
test_2016_flickr.fr 22310 6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90
test_2017_flickr.de 21471 a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee
test_2017_flickr.en 19138 76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074
test_2017_flickr.fr 20434 3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496
train.cs 593827 a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077
train.de 637044 726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6
train.en 568929 d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f
train.fr 604242 622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c
val.cs 22096 b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc
val.de 24681 f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a
val.en 21650 14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28
val.fr 23001 ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9
"""  # packed: bytes and SHA-256


def remote(name: str, size: str, digest: str) -> Remote:
    """A file, as it is listed above."""
    url, checksum = f"{ADDRESS}{name}.gz", f"sha256:{digest}"
    return Remote(name=f"{name}.gz", url=url, size=int(size), checksum=checksum, verified=True)


def captions(
    name: str, storage: Storage, direction: tuple[str, str], splits: dict[str, str]
) -> Iterator[Row]:
    """Captions in one language and in another, split by split."""
    files = storage.files(name)
    for stem, split in splits.items():
        source, target = (files[f"{stem}.{language}"] for language in direction)
        for row in read_parallel(source, target, None):
            yield Row({**row.values, "split": split}, row.file, row.number, row.line)


def entry(source: str, target: str, *, later: bool = False) -> Entry:
    """The set for one direction."""
    splits = LATER if later else SPLIT_OF
    names = tuple(f"{stem}.{language}" for stem in splits for language in (source, target))
    remotes = tuple(remote(*line.split()) for line in FILES.split("\n") if line.startswith(names))
    storage = Storage("multi30k", (names,), remotes)
    names_of = {"en": "English", **LANGUAGES}
    name = f"multi30k-{'2017-' if later else ''}{source}-{target}"
    return Entry(
        name=name,
        what=f"image captions, {names_of[source]} to {names_of[target]}"
        + ("; the 2017 test set, for evaluation" if later else ""),
        licence="none stated; the authors ask to be cited (Elliott et al., 2016)",
        source="https://github.com/multi30k/dataset",
        rows=partial(captions, name, storage, (source, target), splits),
        storage=storage,
    )


DIRECTIONS = [pair for other in LANGUAGES for pair in (("en", other), (other, "en"))]
MULTI30K = [
    *(entry(*pair) for pair in DIRECTIONS),
    *(entry(*pair, later=True) for pair in DIRECTIONS if "cs" not in pair),
]
