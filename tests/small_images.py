"""Small pictures: two labels that a glance tells apart."""

import numpy as np
from PIL import Image

SIDE = 8
LABELS = ("dark", "left", "right")


def pixels_of(label, rng):
    """A grey image that is dark, or bright in its left or right half."""
    pixels = rng.integers(0, 60, size=(SIDE, SIDE), dtype=np.uint8)
    if label != "dark":
        half = slice(0, SIDE // 2) if label == "left" else slice(SIDE // 2, SIDE)
        pixels[:, half] += 150
    return pixels


def write_images(folder, each=24, seed=0):
    """A folder of PNG files for each label."""
    rng = np.random.default_rng(seed)
    for label in LABELS:
        (folder / label).mkdir(parents=True)
        for number in range(each):
            Image.fromarray(pixels_of(label, rng)).save(folder / label / f"{label}{number}.png")
    return folder
