"""Checks of images, which were read already."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from glassformer.data.doctor.check import Check, Figures, Finding, Specimen
from glassformer.wording import counted

PERCENTILES = {"smallest": 0, "median": 50, "largest": 100}
STRETCHED = 2.0  # the ratio of its sides differs from the median by this factor
SHOWN = 8  # sizes


class ImageSizes(Check):
    """Animated images, and shapes of which much is cut off; how sizes are spread.

    Args:
        largest: The longer side to which images are scaled, at most.
    """

    def __init__(self, largest: int) -> None:
        self.largest = largest
        self.animated: list[int] = []
        self.numbers: list[int] = []
        self.sizes: list[tuple[int, int]] = []
        self.colours: Counter[str] = Counter()

    def see(self, row: Specimen) -> None:
        image = row.sample["image"]
        self.numbers.append(row.number)
        self.sizes.append((image["height"], image["width"]))
        self.colours["grey" if image["grey"] else "in colour"] += 1
        if image["frames"] > 1:
            self.animated.append(row.number)

    def findings(self) -> Iterator[Finding]:
        if self.animated:
            what = f"{counted(len(self.animated), 'animated image')}"
            advice = "only the first frame is read; save another one, if it shows more"
            yield Finding("animated images", "note", what, advice, self.animated)
        if not self.sizes:
            return
        sizes = np.array(self.sizes, dtype=float)
        ratio = np.log(sizes[:, 0] / sizes[:, 1])
        apart = np.flatnonzero(np.abs(ratio - np.median(ratio)) > np.log(STRETCHED))
        if len(apart):
            what = f"{counted(len(apart), 'image')} far wider or higher than the others"
            advice = "half of them or more is cut off; crop them yourself"
            numbers = [self.numbers[n] for n in apart.tolist()]
            yield Finding("unusual shapes", "warning", what, advice, numbers)

    def figures(self) -> Figures:
        if not self.sizes:
            return {}
        sides = np.percentile(np.array(self.sizes), list(PERCENTILES.values()), axis=0).astype(int)
        return {
            "height": dict(zip(PERCENTILES, sides[:, 0].tolist(), strict=True)),
            "width": dict(zip(PERCENTILES, sides[:, 1].tolist(), strict=True)),
            "images": dict(self.colours.most_common()),
        }
