"""Folders of images, as rows with a `path`, a `label`, and a `number` and a `split` if known.

    labels   one folder per label, with images in it
    splits   the same inside of train/, valid/ and test/
    idx      train-images-idx3-ubyte and train-labels-idx1-ubyte, as MNIST comes; also t10k-...
    images   images alone, for prediction

The location of a row is the file that it comes from. Images in other formats beside those that can
be read are rows, too, so that they are refused by name and counted. Tables with a column of paths
are read by the general readers; `data.paths.located` finds their images.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from glassformer.data.images.bundles import images_of, read_idx
from glassformer.data.images.reading import SUFFIXES, UNREAD
from glassformer.data.paths import files_in, folders_in
from glassformer.data.rows import Row
from glassformer.data.sources.files import names_in
from glassformer.data.splits import SPLIT_NAMES
from glassformer.errors import GlassformerError

IDX = {"train": "train", "t10k": "test"}  # how MNIST's files begin, and their splits
IDX_ENDS = ("", ".gz")

Recognise = Callable[[Path], bool]
Read = Callable[[Path], Iterator[Row]]


def read_images(path: Path) -> Iterator[Row] | None:
    """The rows of a data set in one of LAYOUTS; None if it is in none of them."""
    for recognises, read in LAYOUTS.values():
        if recognises(path):
            return read(path)
    for folder in folders_in(path):
        if others := [name for name in names_in(folder) if (folder / name).is_file()]:
            raise GlassformerError(
                f"{path}: its folders hold no PNG, JPEG, GIF or WebP images, but files such as "
                f"{folder.name}/{others[0]}; convert them, or choose another job"
            )
    return None


def _is_idx(path: Path) -> bool:
    return bool(idx_files(path))


def idx_files(folder: Path) -> dict[str, tuple[Path, Path]]:
    """The images and labels of each split that are in a folder."""
    found = {}
    for start, split in IDX.items():
        pair = [
            next((path for end in IDX_ENDS if (path := folder / f"{name}{end}").is_file()), None)
            for name in (f"{start}-images-idx3-ubyte", f"{start}-labels-idx1-ubyte")
        ]
        if pair[0] is not None and pair[1] is not None:
            found[split] = (pair[0], pair[1])
    return found


def read_idx_images(folder: Path) -> Iterator[Row]:
    """The images of a folder of IDX files, with their labels and splits."""
    for split, (images, labels) in idx_files(folder).items():
        numbers, count = read_idx(labels, axes=1), len(images_of(images))
        if len(numbers) != count:
            raise GlassformerError(
                f"{labels}: has {len(numbers):,} labels, but {images.name} has {count:,} images; "
                f"fetch both again"
            )
        for number, label in enumerate(numbers.tolist()):
            values = {"path": str(images.absolute()), "number": str(number), "label": str(label)}
            yield Row({**values, "split": split}, str(images), number + 1)


def _is_splits(path: Path) -> bool:
    names = [folder.name.casefold() for folder in folders_in(path)]
    return bool(names) and {*names} <= {*SPLIT_NAMES} and any(map(_is_labels, folders_in(path)))


def _read_splits(path: Path) -> Iterator[Row]:
    for folder in folders_in(path):
        for row in _read_labels(folder):
            yield Row({**row.values, "split": folder.name}, row.file, row.number)


def _is_labels(path: Path) -> bool:
    return any(files_in(folder, SUFFIXES) for folder in folders_in(path))


def _read_labels(path: Path) -> Iterator[Row]:
    for folder in folders_in(path):
        for image in files_in(folder, SUFFIXES | UNREAD):
            yield Row({"path": str(image), "label": folder.name}, str(folder / image.name), 1)


def _is_images(path: Path) -> bool:
    return bool(files_in(path, SUFFIXES))


def _read_images(path: Path) -> Iterator[Row]:
    for image in files_in(path, SUFFIXES | UNREAD):
        yield Row({"path": str(image)}, str(path / image.name), 1)


LAYOUTS: dict[str, tuple[Recognise, Read]] = {
    "idx": (_is_idx, read_idx_images),
    "splits": (_is_splits, _read_splits),
    "labels": (_is_labels, _read_labels),
    "images": (_is_images, _read_images),
}
