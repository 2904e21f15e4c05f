"""Files that hold many images of one size: MNIST's IDX format, and CIFAR's binary format.

    IDX     two zero bytes, the type (8: bytes), the number of axes; the length of each axis, as
            big-endian integers of 32 bits; the values. LeCun, Cortes and Burges, 1998.
    CIFAR   a byte for the label, then 32 x 32 pixels of red, of green and of blue, for each image.
            Krizhevsky, 2009.

An image in such a file is named by the file and its number, from 0: `train-images-idx3-ubyte#17`.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from glassformer.data.sources.files import opened, packing_of
from glassformer.errors import GlassformerError

BYTES = 8  # the code of this type in an IDX file
SIDE = 32  # pixels of an image of CIFAR
RECORD = 1 + 3 * SIDE * SIDE  # bytes
LARGEST = 1 << 31  # bytes
KEPT = 4  # files

Pixels = UInt8[np.ndarray, "_ _ _"]  # height, width and channels, which differ within one call


def is_bundle(path: Path) -> bool:
    """Whether a file holds many images, by its name."""
    name = path.with_suffix("").name if packing_of(path) else path.name
    return name.endswith(("idx3-ubyte", ".idx3")) or name.endswith(".bin")


def images_of(path: Path) -> UInt8[np.ndarray, "N height width channels"]:
    """All images of a file; it is read once."""
    seen = path.stat()
    return _images(path, seen.st_size, seen.st_mtime_ns)


@lru_cache(maxsize=KEPT)
def _images(path: Path, size: int, changed: int) -> UInt8[np.ndarray, "N height width channels"]:
    if path.suffix == ".bin":
        records = cifar_records(path)
        return records[:, 1:].reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return read_idx(path, axes=3)[..., None]


def image_in(path: Path, number: int) -> Pixels:
    """One image of a file."""
    images = images_of(path)
    if not 0 <= number < len(images):
        raise GlassformerError(
            f"{path}#{number}: has {len(images):,} images; give a number from 0 to "
            f"{len(images) - 1:,}"
        )
    return images[number]


def read_idx(path: Path, axes: int) -> UInt8[np.ndarray, "..."]:
    """The array in an IDX file of bytes, which may be compressed."""
    with opened(path, binary=True) as file:
        data = file.read(LARGEST)
    shape = tuple(np.frombuffer(data[4 : 4 + 4 * axes], dtype=">u4").tolist())
    head = bytes((0, 0, BYTES, axes))
    if data[:4] != head or len(shape) != axes or len(data) != 4 + 4 * axes + np.prod(shape):
        raise GlassformerError(
            f"{path}: not a complete IDX file of bytes with {axes} axes; fetch it again"
        )
    return np.frombuffer(data, dtype=np.uint8, offset=4 + 4 * axes).reshape(shape)


def cifar_records(path: Path) -> UInt8[np.ndarray, "N bytes"]:
    """The records of a file of CIFAR: a label and an image each."""
    with opened(path, binary=True) as file:
        data = file.read(LARGEST)
    if not data or len(data) % RECORD:
        raise GlassformerError(
            f"{path}: {len(data):,} bytes, but images of CIFAR take {RECORD:,} each; fetch it again"
        )
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, RECORD)
