"""An explanation: what a prediction is based on, as plain data that any picture can draw.

    pieces      what was read, in parts that can be left out: words, tokens, stretches of sound
    targets     what is explained: labels, written words, the fill of a gap
    influence   how much each piece speaks for (positive) or against (negative) each target
    attention   the weights of every attention, between tokens

`terminal`, `picture` and `page` draw it; `as_values` is the same for JSON.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

DIGITS = 4  # of numbers in JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One thing that is explained.

    Attributes:
        text: A label, a written word or token, the fill of a gap.
        probability: The model's probability of it.
        alternatives: What else was likely in its place, with probabilities, best first.
        time: Where in the recording it was heard, in seconds.
    """

    text: str
    probability: float
    alternatives: tuple[tuple[str, float], ...] = ()
    time: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class AttentionMap:
    """The weights of one attention layer.

    Attributes:
        name: The path of the layer in the model, such as `encoder.blocks.0.attention`.
        queries, keys: The tokens on either side.
    """

    name: str
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: Float[Tensor, "H T S"]


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Sound:
    """The recording that was read.

    Attributes:
        samples: The waveform, mono.
        spectrogram: Its log-mel features.
        frame: Seconds from one frame to the next.
        posteriors: How likely CTC finds each of `symbols` at every vector; None without CTC.
        vector: Seconds from one vector of the encoder to the next.
    """

    samples: Float[Tensor, " samples"]
    rate: int
    spectrogram: Float[Tensor, "frames M"]
    frame: float
    vector: float
    posteriors: Float[Tensor, "S symbols"] | None = None
    symbols: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Branch:
    """A hypothesis of a beam at one step: its last token, its score so far, and its parent.

    Attributes:
        parent: The place of the branch that it extends in the step before; None at the first.
        kept: Whether it became part of the answer.
    """

    token: str
    score: float
    parent: int | None
    kept: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbour:
    """A training row close to the input in the encoder's space.

    Attributes:
        where: The file and row it comes from.
        similarity: The cosine of the angle between both.
        target: Its label or its other side, if it has one.
    """

    where: str
    text: str
    target: str
    similarity: float


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Explanation:
    """What one prediction is based on.

    Attributes:
        given, answer: The input and the prediction as text.
        pieces: Joined, they are the text that was read.
        method: The method that gave `influence`, a name in `explaining.methods.METHODS`.
        verdict: How far that method can be trusted on this run, in one sentence.
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
    neighbours: tuple[Neighbour, ...] = field(default=())

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
