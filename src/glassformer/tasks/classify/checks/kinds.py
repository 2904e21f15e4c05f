"""What is labelled: texts or recordings, not both."""

from collections.abc import Iterator

from glassformer.data.doctor.check import Check, Finding, Specimen
from glassformer.wording import counted


class OneKind(Check):
    """Texts among recordings, or the other way round, whichever are fewer."""

    def __init__(self) -> None:
        self.texts: list[int] = []
        self.recordings: list[int] = []

    def see(self, row: Specimen) -> None:
        (self.texts if "text" in row.sample else self.recordings).append(row.number)

    def findings(self) -> Iterator[Finding]:
        if self.texts and self.recordings:
            kinds = [("text", self.texts), ("recording", self.recordings)]
            (noun, fewer), (other, _) = sorted(kinds, key=lambda kind: len(kind[1]))
            what = f"{counted(len(fewer), noun)} among {other}s"
            advice = "training refuses them; train on texts and on recordings separately"
            yield Finding("mixed kinds", "error", what, advice, fewer)
