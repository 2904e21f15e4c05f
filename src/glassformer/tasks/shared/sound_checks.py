"""Checks for every job that reads recordings. The sounds were read already."""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np

from glassformer.data.doctor.check import Check, Figures, Finding, Specimen
from glassformer.wording import counted

SILENT = 0.005  # no sample is louder
CLIPPED = 0.001  # of the samples at the end of the range
PERCENTILES = {"shortest": 0, "5 %": 5, "median": 50, "95 %": 95, "longest": 100}


class SoundLevels(Check):
    """Silence, clipping, overlong recordings and low rates; how rates and lengths are spread.

    Args:
        longest: The seconds of a recording that is trained on, at most.
        rate: Samples a second in training.
        cuts: Whether only the beginning of a longer one is read, instead of nothing.
    """

    def __init__(self, longest: float, rate: int, *, cuts: bool = False) -> None:
        self.longest, self.rate, self.cuts = longest, rate, cuts
        self.silent: list[int] = []
        self.clipped: list[int] = []
        self.long: list[int] = []
        self.too_long, self.usable = 0, 0  # training recordings
        self.seconds: list[float] = []
        self.rates: Counter[int] = Counter()

    def see(self, row: Specimen) -> None:
        sound = row.sample["sound"]
        self.seconds.append(sound["seconds"])
        self.rates[sound["rate"]] += 1
        if sound["peak"] < SILENT:
            self.silent.append(row.number)
        if sound["clipped"] > CLIPPED:
            self.clipped.append(row.number)
        if sound["seconds"] > self.longest:
            self.long.append(row.number)
        if row.split == "train":
            self.too_long += sound["seconds"] > self.longest
            self.usable += sound["seconds"] <= self.longest

    def findings(self) -> Iterator[Finding]:
        if self.silent:
            what = f"{counted(len(self.silent), 'recording')} without a sound"
            advice = "record them again, or drop them with --fix"
            yield Finding("silence", "warning", what, advice, self.silent)
        if self.clipped:
            what = f"{counted(len(self.clipped), 'recording')} too loud for the range (clipped)"
            advice = "record them again with a lower level, if they are many"
            yield Finding("clipping", "note", what, advice, self.clipped)
        if self.long:
            what = f"{counted(len(self.long), 'recording')} longer than {self.longest:g} seconds"
            read = "only their beginning is read" if self.cuts else "training leaves them out"
            advice = f"{read}; cut them, or raise task.max_seconds"
            severity = "error" if self.too_long and not self.usable else "warning"
            severity = "note" if self.cuts else severity
            yield Finding("long recordings", severity, what, advice, self.long)
        [(usual, _)] = self.rates.most_common(1) or [(self.rate, 0)]
        if usual < self.rate:
            what = f"most recordings have {usual:,} samples a second, task.rate is {self.rate:,}"
            advice = (
                f"so high mel bins are empty; train with --set task.rate={usual} "
                f"--set model.frontend.kind=subsampling --set model.frontend.bins=40"
            )
            yield Finding("low rate", "warning", what, advice)

    def figures(self) -> Figures:
        if not self.seconds:
            return {}
        lengths = np.percentile(self.seconds, list(PERCENTILES.values())).round(1)
        return {
            "seconds": dict(zip(PERCENTILES, lengths.tolist(), strict=True)),
            "samples a second": {str(rate): count for rate, count in self.rates.most_common()},
        }

    def to_drop(self) -> Mapping[int, str]:
        return dict.fromkeys(self.silent, "silent")
