"""What the doctor looks for in recordings and their transcripts. The sounds were read already."""

from collections import Counter
from collections.abc import Iterator

from glassformer.data.doctor.check import Answer, Check, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted
from glassformer.data.rows import listed
from glassformer.decode.ctc import frames_needed
from glassformer.tasks.shared.sound import FRAMES_A_SECOND, vectors_of
from glassformer.tasks.shared.sound_checks import finding_in


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
            yield finding_in("long transcripts", "warning", what, advice, self.rows, where)


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
            yield finding_in("rare characters", "note", what, advice, rows, where)
