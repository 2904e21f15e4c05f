"""What training changes in a picture; all randomness comes from the generator that is given.

shifted   a crop of the picture with a margin around it    Krizhevsky et al., 2012
flipped   left and right exchanged, half of the time
erased    a rectangle filled with noise                     Zhong et al., "Random erasing", 2017
mixed     two pictures, one shining through the other       Zhang et al., "mixup", 2017
warped    many pictures, each turned and scaled about its middle
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch.nn import functional as F

from glassformer.data.images.bundles import Pixels

LEAST_AREA, MOST_AREA = 0.02, 0.33  # of a picture that is erased
MOST_STRETCH = 3.3  # of the sides of what is erased


def shifted(pixels: Pixels, rng: np.random.Generator, most: int) -> Pixels:
    """Moved by up to `most` pixels in both directions; the border is repeated."""
    top, left = rng.integers(-most, most + 1, size=2).tolist()
    return pixels[_moved(pixels.shape[0], top)][:, _moved(pixels.shape[1], left)]


def _moved(length: int, by: int) -> Int[np.ndarray, " length"]:
    """The places of an axis, moved; the ends are repeated."""
    return np.clip(np.arange(by, by + length), 0, length - 1)


def flipped(pixels: Pixels, rng: np.random.Generator) -> Pixels:
    """Mirrored, half of the time."""
    return pixels[:, ::-1] if rng.random() < 0.5 else pixels


def erased(pixels: Pixels, rng: np.random.Generator, share: float) -> Pixels:
    """With a rectangle of noise, in so many cases."""
    if rng.random() >= share:
        return pixels
    height, width, channels = pixels.shape
    area = rng.uniform(LEAST_AREA, MOST_AREA) * height * width
    stretch = math.exp(rng.uniform(-1, 1) * math.log(MOST_STRETCH))
    rows = min(height, max(1, round(math.sqrt(area * stretch))))
    columns = min(width, max(1, round(math.sqrt(area / stretch))))
    top, left = rng.integers(0, height - rows + 1), rng.integers(0, width - columns + 1)
    changed = pixels.copy()
    noise = rng.integers(0, 256, size=(rows, columns, channels), dtype=np.uint8)
    changed[top : top + rows, left : left + columns] = noise
    return changed


def mixed(
    first: Float[np.ndarray, "..."],
    second: Float[np.ndarray, "..."],
    share: float | Float[np.ndarray, "..."],
) -> Float[np.ndarray, "..."]:
    """The first to a share, and the second to the rest; of pictures, or of labels."""
    return share * first + (1 - share) * second


def warped(
    images: Float[np.ndarray, "B height width channels"],
    degrees: Float[np.ndarray, " B"],
    zooms: Float[np.ndarray, " B"],
) -> Float[np.ndarray, "B height width channels"]:
    """Each turned counter-clockwise and scaled about its middle; the border is repeated.

    >>> cross = np.array([[0, 1, 0], [0, 1, 1], [0, 0, 0]], dtype=np.float32)[None, ..., None]
    >>> np.rint(warped(cross, np.array([90.0]), np.array([1.0])))[0, ..., 0].astype(int)
    array([[0, 1, 0],
           [1, 1, 0],
           [0, 0, 0]])
    """
    _, height, width, _ = images.shape
    cos, sin = (f(np.radians(degrees)) / zooms for f in (np.cos, np.sin))
    none, aspect = np.zeros_like(cos), height / width  # the grid runs from -1 to 1 on both axes
    where = np.stack([cos, -sin * aspect, none, sin / aspect, cos, none], axis=1)
    pixels = torch.from_numpy(images).permute(0, 3, 1, 2)  # (B, channels, height, width)
    grid = F.affine_grid(
        torch.from_numpy(where.reshape(-1, 2, 3).astype(np.float32)),
        list(pixels.shape),
        align_corners=False,
    )
    found = F.grid_sample(pixels, grid, padding_mode="border", align_corners=False)
    return found.permute(0, 2, 3, 1).numpy()
