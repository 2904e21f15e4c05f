"""Pixels at the size and with the channels that a model reads."""

import numpy as np

from glassformer.data.images.bundles import Pixels
from glassformer.data.images.reading import import_pillow

LUMA = np.array([0.299, 0.587, 0.114])  # of red, green and blue in grey; ITU-R BT.601


def fitted(pixels: Pixels, height: int, width: int, channels: int) -> Pixels:
    """Scaled to cover the size, the middle of what is left, in grey or RGB."""
    return with_channels(resized(pixels, height, width), channels)


def resized(pixels: Pixels, height: int, width: int) -> Pixels:
    """Scaled until it covers the size, and cut at the longer side, alike at both ends."""
    if pixels.shape[:2] == (height, width):
        return pixels
    rows, columns, channels = pixels.shape
    scale = max(height / rows, width / columns)
    left, top = (columns - width / scale) / 2, (rows - height / scale) / 2
    pillow = import_pillow()
    image = pillow.fromarray(pixels[..., 0] if channels == 1 else pixels).resize(
        (width, height),
        pillow.Resampling.BICUBIC,
        box=(left, top, left + width / scale, top + height / scale),
    )
    return np.asarray(image).reshape(height, width, channels)


def with_channels(pixels: Pixels, channels: int) -> Pixels:
    """Grey repeated as RGB, or RGB as grey."""
    if pixels.shape[2] == channels:
        return pixels
    if channels == 3:
        return np.repeat(pixels, 3, axis=2)
    return np.rint(pixels @ LUMA).astype(np.uint8)[..., None]
