"""What the doctor looks for in recordings and their transcripts. The sounds were read already."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from glassformer.data.doctor.check import Answer, Check, Figures, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named
from glassformer.data.rows import listed
from glassformer.decode.ctc import frames_needed
from glassformer.tasks.transcribe.sounds import FRAMES_A_SECOND, vectors_of

SILENT = 0.005  # no sample is louder
CLIPPED = 0.001  # of the samples at the end of the range
PERCENTILES = {"shortest": 0, "5 %": 5, "median": 50, "95 %": 95, "longest": 100}


class SoundLevels(Check):
    """Silence, clipping and overlong recordings; how rates and lengths are spread.

    Args:
        longest: The seconds of a recording that is trained on, at most.
    """

    def __init__(self, longest: float) -> None:
        self.longest = longest
        self.silent: list[int] = []
        self.clipped: list[int] = []
        self.long: list[int] = []
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

    def findings(self, where: Where) -> Iterator[Finding]:
        if self.silent:
            what = f"{counted(len(self.silent), 'recording')} without a sound"
            advice = "record them again, or drop them with --fix"
            yield _finding("silence", "warning", what, advice, self.silent, where)
        if self.clipped:
            what = f"{counted(len(self.clipped), 'recording')} too loud for the range (clipped)"
            advice = "record them again with a lower level, if they are many"
            yield _finding("clipping", "note", what, advice, self.clipped, where)
        if self.long:
            what = f"{counted(len(self.long), 'recording')} longer than {self.longest:g} seconds"
            advice = "training leaves them out; cut them, or raise task.max_seconds"
            yield _finding("long recordings", "warning", what, advice, self.long, where)

    def figures(self) -> Figures:
        if not self.seconds:
            return {}
        lengths = np.percentile(self.seconds, list(PERCENTILES.values())).round().astype(int)
        return {
            "seconds": dict(zip(PERCENTILES, lengths.tolist(), strict=True)),
            "samples a second": {str(rate): count for rate, count in self.rates.most_common()},
        }

    def to_drop(self) -> Mapping[int, str]:
        return dict.fromkeys(self.silent, "silent")


class LongTranscripts(Check):
    """Transcripts with more characters than the sound has room for: CTC cannot align them.

    Args:
        text: The transcript of a sample, normalised.
        factor: Frames that become one vector.
    """

    def __init__(self, text: Answer, factor: int) -> None:
        self.text, self.factor = text, factor
        self.rows: list[int] = []

    def see(self, row: Specimen) -> None:
        frames = int(row.sample["sound"]["seconds"] * FRAMES_A_SECOND)
        needed = frames_needed([ord(character) for character in self.text(row.sample)])
        if needed > vectors_of(frames, self.factor):
            self.rows.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        if self.rows:
            what = f"{counted(len(self.rows), 'transcript')} too long for the sound"
            advice = (
                "training on characters leaves them out; correct them, or lower "
                "model.frontend.factor"
            )
            yield _finding("long transcripts", "warning", what, advice, self.rows, where)


class RareCharacters(Check):
    """Characters that occur once, which no model can learn; often mistakes."""

    def __init__(self, text: Answer) -> None:
        self.text = text
        self.counts: Counter[str] = Counter()
        self.first: dict[str, int] = {}

    def see(self, row: Specimen) -> None:
        characters = Counter(self.text(row.sample))
        self.counts.update(characters)
        for character in characters:
            self.first.setdefault(character, row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        once = [character for character, count in self.counts.items() if count == 1]
        if once:
            what = f"{counted(len(once), 'character')} seen only once: {listed(once)}"
            advice = "too rare to learn; check whether they are mistakes"
            rows = [self.first[character] for character in once]
            yield _finding("rare characters", "note", what, advice, rows, where)


def _finding(
    kind: str, severity: str, what: str, advice: str, rows: Sequence[int], where: Where
) -> Finding:
    return Finding(
        kind=kind,
        severity=severity,
        what=what,
        advice=advice,
        count=len(rows),
        rows=named(rows, where),
    )
