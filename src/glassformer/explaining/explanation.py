"""An explanation: what a prediction is based on, as plain data that any picture can draw.

    pieces      what was read, in parts that can be left out: words, tokens, stretches of sound
    targets     what is explained: labels, written words, the fill of a gap
    influence   how much each piece speaks for (positive) or against (negative) each target
    attention   the weights of every attention, between tokens

`terminal`, `picture` and `page` draw it; `as_values` is the same for JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from glassformer.explaining.parts import AttentionMap, Branch, Neighbour, Sound, Target

DIGITS = 4  # of numbers in JSON


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Explanation:
    """What one prediction is based on.

    Attributes:
        given, answer: The input and the prediction as text.
        pieces: Joined, they are the text that was read.
        method: The method that gave `influence`, a name in `explaining.methods.METHODS`.
        verdict: How far that method can be trusted on this run, in one sentence.
        written: Whether the targets are parts of a text, one after the other, such as words of a
            translation or fills of gaps, rather than labels to choose from.
    """

    job: str
    given: str
    answer: str
    pieces: tuple[str, ...]
    targets: tuple[Target, ...]
    influence: Float[Tensor, "targets pieces"]
    method: str
    verdict: str = ""
    attention: tuple[AttentionMap, ...] = ()
    sound: Sound | None = None
    beam: Sequence[Sequence[Branch]] = ()
    neighbours: tuple[Neighbour, ...] = ()
    written: bool = False

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "job": self.job,
            "input": self.given,
            "prediction": self.answer,
            "method": self.method,
            "verdict": self.verdict,
            "pieces": list(self.pieces),
            "targets": [_target_values(target) for target in self.targets],
            "influence": _rounded(self.influence),
            "attention": [
                {
                    "name": one.name,
                    "queries": list(one.queries),
                    "keys": list(one.keys),
                    "weights": _rounded(one.weights),
                }
                for one in self.attention
            ],
            "beam": [[_branch_values(branch) for branch in step] for step in self.beam],
            "neighbours": [
                {
                    "where": one.where,
                    "text": one.text,
                    "target": one.target,
                    "similarity": round(one.similarity, DIGITS),
                }
                for one in self.neighbours
            ],
        }


def _target_values(target: Target) -> dict[str, Any]:
    values: dict[str, Any] = {
        "text": target.text,
        "probability": round(target.probability, DIGITS),
        "alternatives": [[text, round(p, DIGITS)] for text, p in target.alternatives],
    }
    return values if target.time is None else {**values, "time": list(target.time)}


def _branch_values(branch: Branch) -> dict[str, Any]:
    return {
        "token": branch.token,
        "score": round(branch.score, DIGITS),
        "parent": branch.parent,
        "kept": branch.kept,
    }


def _rounded(values: Tensor) -> list[Any]:
    nested: list[Any] = (values.double() * 10**DIGITS).round().div(10**DIGITS).tolist()
    return nested
