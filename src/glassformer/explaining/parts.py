"""The parts of an explanation, as plain data: targets, attention, a sound, an image, a beam ..."""

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float, UInt8
from torch import Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One thing that is explained.

    Attributes:
        text: A label, a written word or token, the fill of a gap.
        probability: The model's probability of it.
        alternatives: What else was likely in its place, with probabilities, best first.
        time: Where in the recording it was heard, in seconds.
        entropy: How open the choice was, in bits; None where it was not one of tokens.
    """

    text: str
    probability: float
    alternatives: tuple[tuple[str, float], ...] = ()
    time: tuple[float, float] | None = None
    entropy: float | None = None


def are_written(targets: Sequence[Target]) -> bool:
    """Whether targets are parts of a text, each with alternatives of its own.

    Otherwise they are labels to choose from, which are alternatives to one another.
    """
    return any(target.alternatives or target.time for target in targets)


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

    def __post_init__(self) -> None:
        named, there = (len(self.queries), len(self.keys)), tuple(self.weights.shape[1:])
        if named != there:
            raise ValueError(
                f"{self.name}: got names of {named[0]} queries and {named[1]} keys, but the "
                f"weights are {there[0]} by {there[1]}; name each of them"
            )


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Sound:
    """The recording that was read.

    Attributes:
        samples: The waveform, mono.
        spectrogram: Its log-mel features.
        frame: Seconds from one frame to the next.
        posteriors: How likely CTC finds each of `symbols` at every vector, the blank first; None
            without CTC.
        vector: Seconds from one vector of the encoder to the next.
        stretches: Where each piece of the explanation starts and ends, in seconds.
        unit, ticks: What the features are, and labels of some, by their place.
    """

    samples: Float[Tensor, " samples"]
    rate: int
    spectrogram: Float[Tensor, "frames M"]
    frame: float
    vector: float
    posteriors: Float[Tensor, "S symbols"] | None = None
    symbols: tuple[str, ...] = ()
    stretches: tuple[tuple[float, float], ...] = ()
    unit: str = "Hz"
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return len(self.samples) / self.rate


@dataclass(frozen=True, kw_only=True, eq=False, slots=True)
class Image:
    """The image that was read; its pieces are patches, row by row.

    Attributes:
        pixels: From 0 to 255, grey or RGB.
        rows, columns: How many patches there are.
    """

    pixels: UInt8[Tensor, "height width channels"]
    rows: int
    columns: int

    def grid(self, values: Float[Tensor, " patches"]) -> Float[Tensor, "rows columns"]:
        """A value of each patch, as they lie."""
        return values.reshape(self.rows, self.columns)

    def looked_at(self, attention: AttentionMap) -> Float[Tensor, "rows columns"]:
        """How much each patch is attended to, by the class token, or without one by all patches.

        What the class token keeps for itself is left out.
        """
        weights, patches = attention.weights.float().mean(0), self.rows * self.columns
        first = len(attention.keys) - patches  # a class token comes before the patches
        by = weights[:1] if first else weights
        return self.grid(by[:, first:].mean(0))


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
