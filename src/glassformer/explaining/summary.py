"""A summary of many explanations: which words matter overall, for each label.

A word's influence is its mean over the inputs that have it, where several pieces of one input add
up. Words that are in few inputs are left out: what they say may be chance.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from glassformer.explaining.record import ExplanationRecord, significant

LEAST = 3  # inputs that a word must be in
MOST = 15  # words for and against each target


@dataclass(frozen=True, kw_only=True, slots=True)
class WordInfluence:
    """What a word does on average, and in how many inputs it is."""

    word: str
    influence: float
    inputs: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary:
    """The words that matter most for each target, the strongest first.

    Attributes:
        rows: How many inputs were explained.
        least: Words in fewer inputs are left out.
        pieces: What the words are: words, or patches of images, named by row and column.
    """

    rows: int
    method: str
    signed: bool
    verdict: str
    least: int
    supporting: dict[str, tuple[WordInfluence, ...]]
    opposing: dict[str, tuple[WordInfluence, ...]]
    pieces: str = "words"

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        sides = {"for": self.supporting, "against": self.opposing}
        return {
            "rows": self.rows,
            "method": self.method,
            "verdict": self.verdict,
            "least": self.least,
            "words": {
                target: {side: _values(words[target]) for side, words in sides.items()}
                for target in self.supporting
            },
        }


def summarise(explanations: Iterable[ExplanationRecord], *, least: int = LEAST) -> Summary:
    """What matters overall in explanations by one method."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    rows, last = 0, None
    for last in explanations:
        rows += 1
        if last.sound is not None:  # stretches of one recording are not those of another
            continue
        words = [piece.strip().lower() for piece in last.pieces]
        for target, influence in zip(last.targets, last.influence.tolist(), strict=True):
            total: dict[str, float] = defaultdict(float)
            for word, value in zip(words, influence, strict=True):
                total[word] += value
            for word, value in total.items():
                if any(map(str.isalnum, word)):
                    found[target.text.strip()][word].append(value)
    if last is None:
        raise ValueError("there is nothing to summarise; give at least one explanation")
    ranked = {target: _ranked(words, least) for target, words in sorted(found.items())}
    return Summary(
        rows=rows,
        method=last.method,
        signed=last.signed,
        verdict=last.verdict,
        least=least,
        pieces="words" if last.image is None else "patches",
        supporting={
            name: tuple(w for w in words if w.influence > 0)[:MOST]
            for name, words in ranked.items()
        },
        opposing={
            name: tuple(w for w in reversed(words) if w.influence < 0)[:MOST]
            for name, words in ranked.items()
        },
    )


def _ranked(words: dict[str, list[float]], least: int) -> list[WordInfluence]:
    """Words by their mean influence, the largest first."""
    often = (
        WordInfluence(word=word, influence=sum(values) / len(values), inputs=len(values))
        for word, values in words.items()
        if len(values) >= least
    )
    return sorted(often, key=lambda one: -one.influence)


def _values(words: tuple[WordInfluence, ...]) -> list[dict[str, Any]]:
    return [
        {"word": one.word, "influence": significant(one.influence), "inputs": one.inputs}
        for one in words
    ]
