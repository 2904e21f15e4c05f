"""What the doctor looks for in recordings and their transcripts. The sounds were read already."""

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from glassformer.data.doctor.check import Answer, Check, Finding, Specimen
from glassformer.data.rows import listed
from glassformer.decode.ctc import frames_needed
from glassformer.tasks.shared.sound import FRAMES_A_SECOND, vectors_of
from glassformer.wording import counted

ENOUGH = 20  # transcripts that tell what is usual
LEAST_RATIO, UNLIKELY = 3.0, 8.0  # of a pace to the usual one; in median distances of its logarithm


class LongTranscripts(Check):
    """Transcripts with more characters than the sound has room for: CTC cannot align them.

    Args:
        text: The transcript of a sample, normalised.
        factor: Frames that become one vector.
    """

    def __init__(self, text: Answer, factor: int) -> None:
        self.text, self.factor = text, factor
        self.rows: list[int] = []
        self.too_long, self.usable = 0, 0  # training rows

    def see(self, row: Specimen) -> None:
        frames = int(row.sample["sound"]["seconds"] * FRAMES_A_SECOND)
        needed = frames_needed([ord(character) for character in self.text(row.sample)])
        fits = needed <= vectors_of(frames, self.factor)
        if not fits:
            self.rows.append(row.number)
        if row.split == "train":
            self.too_long += not fits
            self.usable += fits

    def findings(self) -> Iterator[Finding]:
        if self.rows:
            what = f"{counted(len(self.rows), 'transcript')} too long for the sound"
            advice = (
                "training on characters leaves them out; correct them, or lower "
                "model.frontend.factor"
            )
            severity = "error" if self.too_long and not self.usable else "warning"
            yield Finding("long transcripts", severity, what, advice, self.rows)


class UnlikelyPaces(Check):
    """Transcripts far too short or too long for their sound, compared with the others.

    Args:
        text: The transcript of a sample, normalised.
    """

    needs_all = True

    def __init__(self, text: Answer) -> None:
        self.text = text
        self.rows: list[int] = []
        self.paces: list[float] = []

    def see(self, row: Specimen) -> None:
        seconds = row.sample["sound"]["seconds"]
        self.rows.append(row.number)
        self.paces.append(math.log(max(1, len(self.text(row.sample))) / seconds))

    def findings(self) -> Iterator[Finding]:
        if len(self.paces) < ENOUGH:
            return
        usual = float(np.median(self.paces))
        distances = np.abs(np.array(self.paces) - usual)
        limit = max(math.log(LEAST_RATIO), UNLIKELY * float(np.median(distances)))
        rows = [self.rows[row] for row in np.flatnonzero(distances > limit)]
        if rows:
            what = (
                f"{counted(len(rows), 'transcript')} unlikely for the length of the sound (usual: "
                f"{math.exp(usual):.1f} characters a second)"
            )
            advice = "listen to them; the transcript may be of another recording, or incomplete"
            yield Finding("unlikely paces", "note", what, advice, rows)


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

    def findings(self) -> Iterator[Finding]:
        once = [character for character, count in self.counts.items() if count == 1]
        if once:
            what = f"{counted(len(once), 'character')} seen only once: {listed(once)}"
            advice = "too rare to learn; check whether they are mistakes"
            rows = [self.first[character] for character in once]
            yield Finding("rare characters", "note", what, advice, rows)
