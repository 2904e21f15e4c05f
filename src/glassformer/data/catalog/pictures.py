"""Pictures: scikit-learn's handwritten digits, MNIST, and CIFAR-10.

`digits` comes with scikit-learn. Its images are written into the cache once, one folder a label, as
a person's own images would lie; every fifth is tested on. The others are read as published.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np

from glassformer.data.catalog.archives import unpacked
from glassformer.data.catalog.storage import Entry, Remote, Storage, writing
from glassformer.data.images.bundles import cifar_records
from glassformer.data.images.layouts import IDX, read_idx_images
from glassformer.data.images.reading import import_pillow
from glassformer.data.rows import Row
from glassformer.errors import GlassformerError, install
from glassformer.files import cache_folder, locked, replacing

VERSION = 1  # of the digits in the cache
TESTED = 5  # one digit of so many
MNIST_FILES = tuple(
    f"{start}-{kind}-ubyte" for start in IDX for kind in ("images-idx3", "labels-idx1")
)
MNIST_MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"  # the authors' page has closed
MNIST_PUBLISHED = {
    "train-images-idx3-ubyte": (
        9_912_422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    "train-labels-idx1-ubyte": (
        28_881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    "t10k-images-idx3-ubyte": (
        1_648_877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    "t10k-labels-idx1-ubyte": (
        4_542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
}
MNIST_STORAGE = Storage(
    "mnist",
    (MNIST_FILES,),
    tuple(
        Remote(
            name=f"{name}.gz",
            url=f"{MNIST_MIRROR}{name}.gz",
            size=size,
            checksum=f"sha256:{checksum}",
        )
        for name, (size, checksum) in MNIST_PUBLISHED.items()
    ),
)
CIFAR_ARCHIVE = "cifar-10-binary.tar.gz"
CIFAR_STORAGE = Storage(
    "cifar10",
    ((CIFAR_ARCHIVE,),),
    (
        Remote(
            name=CIFAR_ARCHIVE,
            url=f"https://www.cs.toronto.edu/~kriz/{CIFAR_ARCHIVE}",
            checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
        ),
    ),
)
CIFAR_LABELS = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR_FILES = {f"data_batch_{number}.bin": "train" for number in range(1, 6)} | {
    "test_batch.bin": "test"
}


def digits() -> Iterator[Row]:
    """1,797 digits of 8 x 8 pixels; the images are written by the first call."""
    folder = digit_images()
    for number, path in enumerate(sorted(folder.glob("*/*.png"), key=lambda one: one.name)):
        split = "test" if number % TESTED == TESTED - 1 else "train"
        values = {"path": str(path), "label": path.parent.name, "split": split}
        yield Row(values, str(path), 1)


def digit_images() -> Path:
    """The folder of the images, which appears when it is complete."""
    folder = cache_folder() / "data" / f"digits-{VERSION}"
    with writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent, wait=True):
            if not folder.is_dir():
                with replacing(folder) as half:
                    write_digits(half)
    return folder


def write_digits(folder: Path) -> None:
    """A PNG file for each digit, in the folder of its label."""
    pillow = import_pillow()
    try:
        found = import_module("sklearn.datasets").load_digits()
    except ImportError:
        raise GlassformerError(
            f"digits come with scikit-learn, which is not installed; {install('baseline')}"
        ) from None
    shades = np.rint(found.images * (255 / 16)).astype(np.uint8)
    for number, (image, label) in enumerate(zip(shades, found.target.tolist(), strict=True)):
        path = folder / str(label) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pillow.fromarray(image).save(path)


def mnist() -> Iterator[Row]:
    """60,000 digits of 28 x 28 pixels to learn from, and 10,000 to be tested on."""
    return read_idx_images(next(iter(MNIST_STORAGE.files("mnist").values())).parent)


def cifar10() -> Iterator[Row]:
    """50,000 photographs of 32 x 32 pixels to learn from, and 10,000 to be tested on."""
    folder = unpacked(CIFAR_STORAGE.files("cifar10")[CIFAR_ARCHIVE], ".bin")
    for name, split in CIFAR_FILES.items():
        [path] = folder.rglob(name) or [folder / name]
        for number, label in enumerate(cifar_records(path)[:, 0].tolist()):
            values = {"path": str(path), "number": str(number), "split": split}
            yield Row({**values, "label": CIFAR_LABELS[label]}, str(path), number + 1)


DIGITS = Entry(
    name="digits",
    what="handwritten digits, 1,797 images of 8 x 8 pixels; built in",
    licence="CC BY 4.0 (Alpaydin and Kaynak, 1998)",
    source="https://archive.ics.uci.edu/dataset/80",
    rows=digits,
)
MNIST = Entry(
    name="mnist",
    what="handwritten digits, 70,000 images of 28 x 28 pixels",
    licence="none stated; usually given as CC BY-SA 3.0",
    source="https://yann.lecun.com/exdb/mnist/",
    rows=mnist,
    storage=MNIST_STORAGE,
)
CIFAR10 = Entry(
    name="cifar10",
    what="photographs of ten kinds of things, 60,000 images of 32 x 32 pixels",
    licence="none stated; the author asks to be cited (Krizhevsky, 2009)",
    source="https://www.cs.toronto.edu/~kriz/cifar.html",
    rows=cifar10,
    storage=CIFAR_STORAGE,
)
