"""Back-translation as a plan sees it: some lines are written, and tell what all of them take."""

import time
from collections.abc import Iterable, Iterator
from itertools import cycle, islice

from glassformer.data.ingest import Seen
from glassformer.data.samples import Sample
from glassformer.runs.back_translation import BackTranslated, written_back
from glassformer.runs.foresight.timing import LONGEST_TRY
from glassformer.runs.run import Run

AT_A_TIME = 128  # lines, before the clock is looked at


class Rehearsal:
    """Writes lines back for a few seconds; the others are given sources that those have.

    So a plan counts as many rows as there will be, of about their length.

    Attributes:
        tried, lines: How many were written, and how many there are.
        seconds: How long the others would take.
    """

    def __init__(self) -> None:
        self.tried, self.lines, self.seconds = 0, 0, 0.0

    def __call__(
        self, run: Run, lines: Iterable[tuple[str, str]], made: BackTranslated, seen: Seen
    ) -> Iterator[Sample]:
        """In the place of `written_back`."""
        made.planned = True
        rest, sources, spent = iter(lines), [], 0.0
        while spent < LONGEST_TRY and (some := list(islice(rest, AT_A_TIME))):
            started = time.perf_counter()
            written = list(written_back(run, some, made, seen))
            spent += time.perf_counter() - started
            self.tried += len(some)
            sources += [str(sample["source"]) for sample in written]
            yield from written
        self.lines = self.tried
        for source, (where, text) in zip(cycle(sources), rest, strict=False):
            self.lines += 1
            made.rows += 1
            seen(made.rows)
            yield {"where": where, "source": source, "target": text}
        self.seconds = spent * (self.lines - self.tried) / max(1, self.tried)

    def note(self) -> list[str]:
        """What the numbers rest on, where not all lines were written."""
        if self.tried == self.lines:
            return []
        return [
            f"Back-translations are counted by those of {self.tried:,} of {self.lines:,} lines."
        ]
