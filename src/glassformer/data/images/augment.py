"""What training changes in a picture; all randomness comes from the generator that is given.

shifted   a crop of the picture with a margin around it    Krizhevsky et al., 2012
flipped   left and right exchanged, half of the time
erased    a rectangle filled with noise                     Zhong et al., "Random erasing", 2017
mixed     two pictures, one shining through the other       Zhang et al., "mixup", 2017
"""

import math

import numpy as np
from jaxtyping import Float

from glassformer.data.images.bundles import Pixels

LEAST_AREA, MOST_AREA = 0.02, 0.33  # of a picture that is erased
MOST_STRETCH = 3.3  # of the sides of what is erased


def shifted(pixels: Pixels, rng: np.random.Generator, most: int) -> Pixels:
    """Moved by up to `most` pixels in both directions; the border is repeated."""
    height, width, _ = pixels.shape
    top, left = rng.integers(0, 2 * most + 1, size=2)
    wide = np.pad(pixels, ((most, most), (most, most), (0, 0)), mode="edge")
    return wide[top : top + height, left : left + width]


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
