"""The parts of a layer: attention, feed-forward net, convolution, norm and position.

Where a record's `kind` comes first, its name stands for the whole record: `norm = "rms"` is
`norm = { kind = "rms" }`, and `NormConfig("rms")` in Python.

The lists of names are literal, so that a command line can show them without importing torch; a test
holds them equal to the dicts they stand for.
"""

from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from glassformer.config.checks import above_zero, choose, positive, require, share

KIND_NAMES = ("softmax", "linear", "linformer")
PROJECTION_NAMES = ("q", "k", "v", "out")
POSITION_NAMES = (
    *("none", "learned", "sinusoidal", "rotary", "alibi", "t5", "shaw", "transformer-xl"),
)
POSITIONS_OF_KIND = {
    "linear": ("none", "learned", "sinusoidal"),
    "linformer": ("none", "learned", "sinusoidal", "rotary"),
}
SETTINGS_OF_POSITION = {
    "rotary": ("base", "scaling", "fraction"),
    "t5": ("buckets", "max_distance"),
    "shaw": ("clip",),
}
SCALING_NAMES = ("linear", "ntk", "yarn", "llama3")
SCALINGS_BY_LENGTH = ("yarn", "llama3")  # depend on the rotations of a pair within a length
FEEDFORWARD_NAMES = (
    *("relu", "relu2", "gelu", "gelu-tanh", "silu"),
    *("swiglu", "geglu", "geglu-tanh"),
    "convolution",
)
NORM_NAMES = ("layer", "rms", "batch")


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionConfig:
    """Attention.

    Args:
        kind: Kind of attention: `softmax`, `linear` or `linformer`.
        heads: Number of query heads.
        kv_heads: Number of key and value heads; none for the number of query heads.
        key_width: Width of a query and of a key; none for `dim / heads`.
        value_width: Width of a value; none for `key_width`.
        bias: Which projections have a bias: all (true), none (false), or those listed, such as
            ["q", "k", "v"].
        qk_norm: Whether queries and keys are normalised.
        scale: Factor on the product of a query and a key; none for 1/√key_width.
        softcap: Limits the scores to ± this value, by limit * tanh(score / limit); none for no
            limit.
        dropout: Share of the attention weights dropped in training.
        window: In self-attention, each position sees only positions fewer than this many steps
            away; 0 for no limit. A list holds a window for each layer, starting with the first, and
            is repeated.
        summary: Number of keys that a sequence is projected to (linformer).
    """

    HOME: ClassVar[str] = "attention."

    kind: str = "softmax"
    heads: int = 8
    kv_heads: int | None = None
    key_width: int | None = None
    value_width: int | None = None
    bias: bool | tuple[str, ...] = True
    qk_norm: bool = False
    scale: float | None = None
    softcap: float | None = None
    dropout: float = 0.0
    window: int | tuple[int, ...] = 0
    summary: int = 64

    def __post_init__(self) -> None:
        choose("attention.kind", self.kind, KIND_NAMES)
        for name in ("heads", "kv_heads", "key_width", "value_width", "summary"):
            positive(f"attention.{name}", getattr(self, name))
        share("attention.dropout", self.dropout)
        for projection in () if isinstance(self.bias, bool) else self.bias:
            choose("projection in attention.bias", projection, PROJECTION_NAMES)
        windows = self.windows
        require(
            bool(windows) and min(windows) >= 0,
            f"attention.window must be 0 (no window) or more, or a list of such numbers; "
            f"got {self.window if windows else 'an empty list'}",
        )
        above_zero("attention.scale", self.scale)
        above_zero("attention.softcap", self.softcap)
        compares = self.qk_norm or self.scale is not None or self.softcap is not None
        require(
            self.kind == "softmax" or not (compares or self.dropout or any(windows)),
            f"{self.kind} attention supports neither window, qk_norm, scale, softcap nor dropout "
            f"of weights; leave them out, or use attention.kind = softmax",
        )

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows of the layers, before repetition."""
        return (self.window,) if isinstance(self.window, int) else self.window


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedForwardConfig:
    """The feed-forward net.

    Args:
        kind: Activation: `relu`, `relu2`, `gelu`, `gelu-tanh` or `silu`; gated: `swiglu`, `geglu`
            or `geglu-tanh`; or `convolution`.
        hidden: Width of the hidden layer; none for four times `dim`.
        bias: Whether the layers of the net have a bias.
        dropout: Share of the hidden activations dropped in training.
    """

    HOME: ClassVar[str] = "feedforward."

    kind: str = "gelu"
    hidden: int | None = None
    bias: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        choose("feedforward.kind", self.kind, FEEDFORWARD_NAMES)
        positive("feedforward.hidden", self.hidden)
        share("feedforward.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True, slots=True)
class NormConfig:
    """The norm.

    Args:
        kind: Kind of norm: `layer`, `rms` or `batch`.
        epsilon: Added under the square root; none for 1e-5 (layer, batch) or 1e-6 (rms). If given,
            it also applies to the norms of `attention.qk_norm`.
        bias: Whether a learned shift is added; none for true. `rms` has no shift.
    """

    HOME: ClassVar[str] = "norm."

    kind: str = field(default="layer", kw_only=False)
    epsilon: float | None = None
    bias: bool | None = None

    def __post_init__(self) -> None:
        choose("norm", self.kind, NORM_NAMES)
        above_zero("norm.epsilon", self.epsilon)
        require(
            self.bias is None or self.kind != "rms",
            "norm.bias has no effect with norm.kind = rms, which has none; leave it out",
        )

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the norm besides its width."""
        given = _given(self, "epsilon", "bias")
        return {"eps" if name == "epsilon" else name: value for name, value in given.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvolutionConfig:
    """The convolutions of a Conformer, Branchformer or E-Branchformer block, and of a TCN.

    Args:
        width: Kernel size, an odd number; 3 is usual for a TCN, which uses only this setting.
    """

    HOME: ClassVar[str] = "convolution."

    width: int = 31
    norm: NormConfig = field(default_factory=NormConfig)

    def __post_init__(self) -> None:
        require(
            self.width > 0 and self.width % 2 == 1,
            f"convolution.width must be odd, so that it has a centre; got {self.width}",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingConfig:
    """Scaling of rotary positions to sequences longer than in training.

    Args:
        kind: Method: `linear`, `ntk`, `yarn` or `llama3`.
        factor: How many times longer than in training sequences may be.
        trained_length: Length of the sequences in training (yarn, llama3).
        fast: Channel pairs with at least this many rotations within `trained_length` are unchanged;
            none for 32 (yarn) or 4 (llama3).
        slow: Channel pairs with fewer rotations than this are slowed down by the full factor; none
            for 1 (yarn, llama3).
    """

    HOME: ClassVar[str] = "position.scaling."

    kind: str
    factor: float
    trained_length: int | None = None
    fast: float | None = None
    slow: float | None = None

    def __post_init__(self) -> None:
        choose("position.scaling.kind", self.kind, SCALING_NAMES)
        above_zero("position.scaling.factor", self.factor)
        positive("position.scaling.trained_length", self.trained_length)
        by_length = self.kind in SCALINGS_BY_LENGTH
        require(
            not by_length or self.trained_length is not None,
            f"position.scaling.kind = {self.kind} needs the length the model was trained on; "
            f"set position.scaling.trained_length",
        )
        for name in self.options if not by_length else ():
            require(
                name == "factor",
                f"position.scaling.{name} has no effect with position.scaling.kind = {self.kind}; "
                f"leave it out",
            )
        slow, fast = self.slow or 1.0, self.fast or (32.0 if self.kind == "yarn" else 4.0)
        require(
            0 < slow < fast,
            f"position.scaling.slow must be above 0 and below fast, got {slow} and {fast}",
        )

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the scaling."""
        return _given(self, "factor", "trained_length", "fast", "slow")


@dataclass(frozen=True, kw_only=True, slots=True)
class PositionConfig:
    """The position scheme. Settings of another kind are refused.

    Args:
        kind: Kind of scheme: `none`, `learned`, `sinusoidal`, `rotary`, `alibi`, `t5`, `shaw` or
            `transformer-xl`.
        base: The slowest channel pair rotates once in about 2π · base steps; none for 10,000
            (rotary).
        scaling: Scaling to longer sequences (rotary).
        fraction: Share of each head's channels that is rotated; none for 1 (rotary).
        buckets: Number of distance buckets; none for 32 (t5).
        max_distance: Distance from which all distances share the last bucket; none for 128 (t5).
        clip: Distance from which all distances share one key; none for 16 (shaw).
    """

    HOME: ClassVar[str] = "position."

    kind: str = field(default="rotary", kw_only=False)
    base: float | None = None
    scaling: ScalingConfig | None = None
    fraction: float | None = None
    buckets: int | None = None
    max_distance: int | None = None
    clip: int | None = None

    def __post_init__(self) -> None:
        choose("position", self.kind, POSITION_NAMES)
        require(
            self.base is None or self.base > 1,
            f"position.base must be above 1, got {self.base}; 10,000 is usual",
        )
        require(
            self.fraction is None or 0 < self.fraction <= 1,
            f"position.fraction must lie in (0, 1], got {self.fraction}",
        )
        for name in ("buckets", "max_distance", "clip"):
            positive(f"position.{name}", getattr(self, name))
        for name in self.options:
            [owner] = [kind for kind, names in SETTINGS_OF_POSITION.items() if name in names]
            require(
                self.kind == owner,
                f"position.{name} has no effect with position.kind = {self.kind}; "
                f"leave it out, or use position.kind = {owner}",
            )

    @property
    def options(self) -> dict[str, Any]:
        """Arguments of the scheme besides the sizes of the stack."""
        return _given(self, *(f.name for f in fields(self) if f.name != "kind"))


def _given(record: object, *names: str) -> dict[str, Any]:
    """The settings of a record that are not None."""
    found = ((name, getattr(record, name)) for name in names)
    return {name: value for name, value in found if value is not None}
