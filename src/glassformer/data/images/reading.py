"""A picture as pixels of 8 bits, grey or RGB, upright.

    16 bits            the upper 8 of them
    palette, 1 bit     the colours that they stand for
    transparent        on white
    CMYK               as RGB
    animated           its first frame
    rotated by EXIF    upright

Only the formats in FORMATS are tried, whatever a file is called: none of them runs another program.
A picture with too many pixels is refused by its header, before it takes memory.
"""

import warnings
from dataclasses import asdict, dataclass
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from glassformer.data.images.bundles import Pixels, image_in
from glassformer.data.sources.files import kind_of, reason
from glassformer.errors import GlassformerError, install

FORMATS = ("PNG", "JPEG", "GIF", "WEBP")
SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".webp"}
UNREAD = {".avif", ".bmp", ".heic", ".jp2", ".svg", ".tif", ".tiff"}  # images, but not for us
MOST_PIXELS = 1 << 26  # 67 million: 200 MB when decoded


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """An image: a file, or one of many in a file."""

    path: Path
    number: int | None = None

    def __str__(self) -> str:
        return str(self.path) if self.number is None else f"{self.path}#{self.number}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageFacts:
    """The facts of a picture once it was read.

    Attributes:
        grey: Whether it has no colours.
        frames: More than 1 if it is animated; only the first is read.
        content: Equal for pictures with the same pixels.
    """

    height: int
    width: int
    grey: bool
    frames: int
    content: str

    def as_values(self) -> dict[str, Any]:
        """Plain values, for a sample."""
        return asdict(self)


def import_pillow() -> Any:
    """Pillow's Image."""
    try:
        return import_module("PIL.Image")
    except ImportError:
        raise GlassformerError(
            f"images are read with Pillow, which is not installed; {install('images')}"
        ) from None


def read_image(picture: Picture, *, most: int = MOST_PIXELS) -> Pixels:
    """The pixels of a picture, at most so many; one that cannot be read right is refused."""
    return _read(picture, most)[0]


def read_facts(picture: Picture) -> ImageFacts:
    """The facts of a picture, which is read for it."""
    pixels, frames = _read(picture)
    height, width, channels = pixels.shape
    digest = blake2b(f"{height} {width} {channels}".encode(), digest_size=16)
    digest.update(pixels.tobytes())
    return ImageFacts(
        height=height,
        width=width,
        grey=channels == 1,
        frames=frames,
        content=digest.hexdigest(),
    )


def _read(picture: Picture, most: int = MOST_PIXELS) -> tuple[Pixels, int]:
    """Pixels, and the number of frames."""
    path = picture.path
    if kind_of(path) == "folder":
        raise GlassformerError(f"{path}: a folder, not an image; name a file in it")
    if picture.number is not None:
        return image_in(path, picture.number), 1
    if not path.stat().st_size:
        raise GlassformerError(f"{path}: the file is empty; save or fetch it again")
    pillow = import_pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # refused below
            with pillow.open(path, formats=FORMATS) as image:
                width, height = image.size
                _refuse_huge(path, width, height, most)
                frames = getattr(image, "n_frames", 1)
                return upright_pixels(image), frames
    except pillow.UnidentifiedImageError:
        raise GlassformerError(
            f"{path}: not an image in one of the formats {', '.join(FORMATS)}; convert it"
        ) from None
    except pillow.DecompressionBombError:
        raise GlassformerError(_huge(path, "by far", most)) from None
    except (OSError, SyntaxError, ValueError, EOFError, IndexError, MemoryError) as error:
        raise GlassformerError(
            f"{path}: a damaged image ({reason(error)}); save or fetch it again"
        ) from None


def upright_pixels(image: Any) -> Pixels:
    """The pixels of an opened image of Pillow."""
    image = import_module("PIL.ImageOps").exif_transpose(image)
    if image.mode.startswith("I"):  # 16 bits; what Pillow converts itself is clipped
        wide = np.asarray(image).astype(np.int64)
        return np.clip(wide >> 8, 0, 255).astype(np.uint8)[..., None]
    if image.has_transparency_data:
        image = image.convert("RGBA")
        page = import_pillow().new("RGBA", image.size, "white")
        image = import_pillow().alpha_composite(page, image).convert("RGB")
    image = image.convert("L" if image.mode in ("1", "L") else "RGB")
    pixels = np.asarray(image)
    if pixels.ndim == 2:
        return pixels[..., None]
    grey = (pixels[..., :1] == pixels).all()
    return pixels[..., :1] if grey else pixels


def _refuse_huge(path: Path, width: int, height: int, most: int) -> None:
    if width * height > most:
        raise GlassformerError(_huge(path, f"{width:,} x {height:,}", most))


def _huge(path: Path, found: str, most: int) -> str:
    return f"{path}: too many pixels ({found}; the limit is {most:,}); scale it down"
