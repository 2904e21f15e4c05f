"""What is found out by explaining many rows: how faithful methods are, which words matter."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from glassformer.explaining.faithfulness import CHANCE, SHARES, Faithfulness
from glassformer.explaining.summary import Summary, WordInfluence
from glassformer.explaining.views.wording import amount, method_name, signed
from glassformer.runs.study import StudyResult
from glassformer.wording import counted


@dataclass(frozen=True, slots=True, repr=False)
class MethodsCompared(StudyResult):
    """How faithful every method is: its gain over a random order, its curves, what it costs."""

    found: Faithfulness

    @property
    def title(self) -> str:
        return f"Faithfulness on {counted(self.found.rows, 'row')}"

    @property
    def header(self) -> list[str]:
        return ["method", "gain over chance", "without what it names", "with only that", "time"]

    def lines(self) -> list[list[str]]:
        lines = []
        for name in (*self.found.ranked(), CHANCE):
            one = self.found.methods[name]
            measured = [str(one), f"{one.seconds * 1000:,.0f} ms"] if name != CHANCE else ["", ""]
            lines.append(
                [name, measured[0], _ends(one.deletion), _ends(one.insertion), measured[1]]
            )
        return lines

    def sentences(self) -> list[str]:
        first = f"{SHARES[0]:.0%} to {SHARES[-1]:.0%}"
        return [
            f"Probability of the prediction without, and with only, {first} of the input, that "
            f"which a method names first",
            *self.found.notes,
        ]

    def as_values(self) -> dict[str, Any]:
        return asdict(self.found)


@dataclass(frozen=True, slots=True, repr=False)
class WordsRanked(StudyResult):
    """Which words matter overall, for and against each label or written word."""

    found: Summary

    @property
    def title(self) -> str:
        rows = counted(self.found.rows, "row")
        return f"{self.found.pieces.capitalize()} that matter overall, in {rows}"

    @property
    def header(self) -> list[str]:
        return ["", "for", "against"] if self.found.signed else ["", "how much it matters"]

    def lines(self) -> list[list[str]]:
        found = []
        for target, words in self.found.supporting.items():
            sides = [words, self.found.opposing[target]] if self.found.signed else [words]
            if any(sides):
                found.append([target, *(self._listed(side) for side in sides)])
        return found

    def _listed(self, words: Iterable[WordInfluence]) -> str:
        number = signed if self.found.signed else amount
        return ", ".join(f"{one.word} {number(one.influence)}" for one in words)

    def sentences(self) -> list[str]:
        if not self.found.supporting:
            return ["The stretches of one recording are not those of another: none matters overall"]
        pieces = self.found.pieces
        least = f"{pieces.capitalize()} in fewer than {self.found.least} rows are left out"
        places = ["Patches are named by row and column, from the top left"]
        none = [] if self.lines() else [f"No {pieces} are in enough rows"]
        verdict = f"{method_name(self.found.method)}: {self.found.verdict}"
        return [*none, least, *(places if pieces == "patches" else ()), verdict]

    def as_values(self) -> dict[str, Any]:
        return self.found.as_values()


def _ends(curve: Sequence[float]) -> str:
    return f"{curve[0]:.2f} to {curve[-1]:.2f}"
