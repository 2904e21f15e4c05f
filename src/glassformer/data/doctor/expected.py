"""What a training would say to the data before it learns anything."""

from collections.abc import Iterator

import numpy as np

from glassformer.data.doctor.finding import Finding
from glassformer.data.doctor.reading import Reading, Source
from glassformer.data.rows import Row
from glassformer.data.samples import SPLITS, Sample
from glassformer.data.splitter import IngestReport, Splitter


class Expected:
    """Parts the rows as a training would, and says whether it would refuse them.

    Args:
        seed: Of the training.
    """

    def __init__(self, reading: Reading, seed: int) -> None:
        self.names = ", ".join(dict.fromkeys(source.name for source in reading.sources))
        self.parting, self.taken = Splitter(reading.config, seed), IngestReport()
        self.parts = bytearray()

    def see(self, source: Source, row: Row, sample: Sample, lacking: str) -> None:
        """Take note of a row, and of what it lacks."""
        if lacking:
            self.taken.skip(f"empty {lacking}", row.where)
            return
        group = row[source.columns["group"]] if "group" in source.columns else ""
        part = self.parting.part_for(
            source.part, row, source.columns, sample | {"group": group}, self.taken
        )
        if part is not None:
            self.parts.append(SPLITS.index(part))

    def findings(self) -> Iterator[Finding]:
        """The words of the training, if it would not begin."""
        parts, _ = self.parting.settled(np.frombuffer(self.parts, dtype=np.uint8))
        self.taken.count(parts)
        refused = self.parting.refusal(self.taken)
        if refused is not None:
            what, advice = refused
            to_evaluate = self.parts and not any(self.parting.drawn)  # all are named for a part
            yield Finding(
                kind="no training",
                severity="note" if to_evaluate else "error",
                what=f"training would refuse {self.names}: {what}",
                advice=advice,
                count=len(parts),
            )
