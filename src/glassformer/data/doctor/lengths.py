"""How long texts are, and how many of them a model would not read to the end.

Tokens are learned later, so they are counted as words, or as characters where texts are so short
that characters will be the tokens.
"""

from array import array
from collections.abc import Iterator

import numpy as np

from glassformer.data.doctor.check import Check, Figures, Specimen
from glassformer.data.doctor.finding import Finding, Where, counted, named
from glassformer.data.doctor.words import count_tokens

MANY = 0.2  # of the texts cut short: what is lost may matter

PERCENTILES = {"shortest": 0, "5 %": 5, "median": 50, "95 %": 95, "longest": 100}


class Lengths(Check):
    """Texts longer than what is read of them.

    Args:
        longest: Tokens that are read of a text; None for a job that reads all.
        tokens: Their kind, as in `data.tokenizer.kind`.
        short: Characters up to which, on average, `auto` tokens are characters.
    """

    def __init__(self, longest: int | None, tokens: str, short: int) -> None:
        self.longest, self.tokens, self.short = longest, tokens, short
        self.words, self.characters, self.numbers = array("L"), array("L"), array("Q")

    def see(self, row: Specimen) -> None:
        self.words.append(count_tokens(row.text))
        self.characters.append(len(row.text))
        self.numbers.append(row.number)

    def findings(self, where: Where) -> Iterator[Finding]:
        if self.longest is None or not self.numbers:
            return
        unit, lengths = self._counted()
        cut = np.flatnonzero(lengths > self.longest)
        share = len(cut) / len(lengths)
        if len(cut):
            yield Finding(
                kind="cut short",
                severity="warning" if share >= MANY else "note",
                what=f"about {counted(len(cut), 'text')} ({share:.1%}) longer than the "
                f"{self.longest:,} {unit} that are read; the longest has {lengths.max():,}",
                advice="read more with --set task.max_length=N, or all with task.long=windows",
                count=len(cut),
                rows=named((self.numbers[place] for place in cut), where),
            )

    def _counted(self) -> tuple[str, np.ndarray]:
        characters = np.array(self.characters)
        by_character = self.tokens in ("characters", "bytes") or (
            self.tokens == "auto" and characters.mean() <= self.short
        )
        return ("characters", characters) if by_character else ("words", np.array(self.words))

    def figures(self) -> Figures:
        if not self.numbers:
            return {}
        lengths = {"words": np.array(self.words), "characters": np.array(self.characters)}
        return {
            f"{unit} in a text": {
                name: int(np.percentile(found, percent, method="lower"))
                for name, percent in PERCENTILES.items()
            }
            for unit, found in lengths.items()
        }
