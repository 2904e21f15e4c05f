"""The schema of jobs whose samples are images, and their roles.

A table names a file in each row, as seen from where the table lies. Folders are those of
`data.images.layouts`. An image is read once, and its facts are kept with its sample.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.data.columns import Columns, Role
from glassformer.data.images.bundles import is_bundle
from glassformer.data.images.layouts import read_images
from glassformer.data.images.reading import SUFFIXES, Picture, import_pillow, read_facts
from glassformer.data.paths import located
from glassformer.data.rows import Row
from glassformer.data.samples import Sample
from glassformer.data.schema import Schema
from glassformer.errors import GlassformerError
from glassformer.tasks.shared.sound_data import MISSING, in_short

PATHS = ("path", "image", "file", "picture", "photo", "filename", "image_path", "file_name", "img")


def paths_of_images(columns: Sequence[str], head: Sequence[Row]) -> str | None:
    """The column whose values all end like images."""
    for column in columns:
        values = (str(row.values.get(column, "")) for row in head)
        if head and all(Path(value).suffix.lower() in SUFFIXES for value in values):
            return column
    return None


PATH = Role(name="path", names=PATHS, guess=paths_of_images, by_content=True)
NUMBER = Role(name="number", names=("number",), required=False)


class ImageSchema(Schema):
    """Samples that are images, except for the answers."""

    noun = "image"

    def open(self, name: str, config: DataConfig) -> Iterator[Row] | None:
        path = Path(name)
        return read_images(path) if path.is_dir() else None

    def value(self, role: Role, row: Row, columns: Columns) -> Any:
        value = super().value(role, row, columns)
        return located(row, value) if role.name == PATH.name and value else value

    def sample(self, row: Row, columns: Columns) -> tuple[Sample, str]:
        """The sample of a row, with the facts of its image, which must be readable."""
        sample, fault = super().sample(row, columns)
        if fault:
            return sample, fault
        if not is_bundle(Path(sample["path"])):
            import_pillow()  # without it, no image can be read
        try:
            sample["image"] = read_facts(picture_of(sample)).as_values()
        except (GlassformerError, OSError) as error:
            why = in_short(error, sample["path"])
            if why.startswith(MISSING):
                near = not Path(row[columns["path"]]).is_absolute()
                why = MISSING + (f", seen from {Path(row.file).parent}" if near else "")
            return sample, f"an image that cannot be read ({why})"
        return sample, ""

    def content(self, sample: Sample, config: DataConfig) -> str:
        """The pixels, whatever the file is called."""
        return str(sample["image"]["content"])


def picture_of(sample: Sample) -> Picture:
    """The image of a sample."""
    path = Path(sample["path"])
    if not is_bundle(path):  # a table may number its rows
        return Picture(path=path)
    number = str(sample.get("number", ""))
    if not number.isdecimal():
        raise GlassformerError(f"{path}: holds many images; give the number of one as {path}#0")
    return Picture(path=path, number=int(number))
