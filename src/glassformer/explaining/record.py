"""The record of an explanation: what a prediction is based on, as plain data that views draw.

    pieces      what was read, in parts that can be left out: words, tokens, stretches of sound
    targets     what is explained: labels, written words, the fill of a gap
    influence   how much each piece speaks for (positive) or against (negative) each target; of
                methods without a sign, how much it counts
    attention   the weights of every attention, between tokens

`as_values` is the same for JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from glassformer.explaining.parts import (
    AttentionMap,
    Branch,
    Image,
    Neighbour,
    Sound,
    Target,
    are_written,
)

DIGITS = 9  # that tell all 32-bit numbers apart
PLACES = 4  # after the point, of weights in JSON


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class ExplanationRecord:
    """What one prediction is based on, as plain data.

    Attributes:
        given, answer: The input and the prediction as text.
        reason: Why there is no prediction; `answer` is then the model's guess.
        strange: The numbers of the pieces in which something was not seen in training.
        pieces: Joined, they are the text that was read.
        method: The method that gave `influence`, a name in `explaining.methods.METHODS`.
        signed: Whether that method tells for from against.
        verdict: How far that method can be trusted on this run, in one sentence.
        notes: Sentences on what is missing.
    """

    job: str
    given: str
    answer: str
    pieces: tuple[str, ...]
    targets: tuple[Target, ...]
    influence: Float[Tensor, "targets pieces"]
    method: str
    signed: bool = True
    verdict: str = ""
    attention: tuple[AttentionMap, ...] = ()
    sound: Sound | None = None
    image: Image | None = None
    beam: Sequence[Sequence[Branch]] = ()
    neighbours: tuple[Neighbour, ...] = ()
    notes: tuple[str, ...] = ()
    strange: tuple[int, ...] = ()
    reason: str = ""

    @property
    def written(self) -> bool:
        """Whether the targets are parts of a text rather than labels to choose from."""
        return are_written(self.targets)

    def as_values(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {
            **self.texts(),
            "influence": [list(map(significant, row)) for row in self.influence.tolist()],
            "attention": [
                {
                    "name": one.name,
                    "queries": list(one.queries),
                    "keys": list(one.keys),
                    "weights": _rounded(one.weights),
                }
                for one in self.attention
            ],
        }
        if self.image is not None:
            values["grid"] = [self.image.rows, self.image.columns]
        return values if self.sound is None else {**values, "sound": _sound_values(self.sound)}

    def answered(self) -> dict[str, Any]:
        """The prediction; or none, why, and the guess that is explained."""
        if not self.reason:
            return {"prediction": self.answer}
        return {"prediction": None, "reason": self.reason, "guess": self.answer}

    def texts(self) -> dict[str, Any]:
        """All but influence, attention, sound and image, which a page packs."""
        return {
            "job": self.job,
            "input": self.given,
            **self.answered(),
            "method": self.method,
            "signed": self.signed,
            "verdict": self.verdict,
            "pieces": list(self.pieces),
            "unknown": list(self.strange),
            "targets": [_target_values(target) for target in self.targets],
            "beam": [[_branch_values(branch) for branch in step] for step in self.beam],
            "neighbours": [
                {
                    "where": one.where,
                    "text": one.text,
                    "target": one.target,
                    "similarity": significant(one.similarity),
                }
                for one in self.neighbours
            ],
            "notes": list(self.notes),
        }


def _target_values(target: Target) -> dict[str, Any]:
    values: dict[str, Any] = {
        "text": target.text,
        "probability": significant(target.probability),
        "alternatives": [[text, significant(p)] for text, p in target.alternatives],
    }
    if target.entropy is not None:
        values["entropy"] = significant(target.entropy)
    return values if target.time is None else {**values, "time": list(target.time)}


def _branch_values(branch: Branch) -> dict[str, Any]:
    return {
        "token": branch.token,
        "score": significant(branch.score),
        "parent": branch.parent,
        "kept": branch.kept,
    }


def _sound_values(sound: Sound) -> dict[str, Any]:
    return {
        "seconds": significant(sound.seconds),
        "vector": sound.vector,
        "stretches": [list(stretch) for stretch in sound.stretches],
        "symbols": list(sound.symbols),
        "posteriors": None if sound.posteriors is None else _rounded(sound.posteriors),
    }


def significant(value: float) -> float:
    """A number with as many digits as count."""
    return float(f"{value:.{DIGITS}g}")


def _rounded(values: Tensor) -> list[Any]:
    nested: list[Any] = (values.double() * 10**PLACES).round().div(10**PLACES).tolist()
    return nested
