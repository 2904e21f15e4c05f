"""The shape of a model: frozen records, nested, checked once when they are made.

The lists of names are literal, so that a command line can show them without importing torch; a test
holds them equal to the dicts they stand for.
"""

from dataclasses import dataclass, field
from typing import Any

from glassformer.config.checks import at_most, choose, positive, require, share

KIND_NAMES = ("softmax", "linear", "linformer")
POSITION_NAMES = (
    "none",
    "learned",
    "sinusoidal",
    "rotary",
    "alibi",
    "t5",
    "shaw",
    "transformer-xl",
)
POSITIONS_OF_KIND = {
    "linear": ("none", "learned", "sinusoidal"),
    "linformer": ("none", "learned", "sinusoidal", "rotary"),
}
FEEDFORWARD_NAMES = ("relu", "gelu", "gelu-tanh", "silu", "swiglu", "convolution")
NORM_NAMES = ("layer", "rms", "batch")
ORDER_NAMES = ("pre", "post", "sandwich")
BLOCK_NAMES = ("transformer", "conformer", "branchformer", "e-branchformer")
STACK_NAMES = ("attention", "gru", "lstm", "tcn")
FRONTEND_NAMES = ("tokens", "ngrams", "subsampling", "resnet", "patches")
POOL_NAMES = ("mean", "max", "first", "attention")
DEEPEST = 10_000  # layers; more take minutes to build


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionConfig:
    """How positions look at each other.

    `key_width` is `dim / heads` unless given, and `value_width` is `key_width`.
    """

    kind: str = "softmax"
    heads: int = 8
    groups: int | None = None
    key_width: int | None = None
    value_width: int | None = None
    bias: bool = True
    qk_norm: bool = False
    dropout: float = 0.0
    summary: int = 64  # Linformer only: how many keys the sequence is summed up in

    def __post_init__(self) -> None:
        choose("attention.kind", self.kind, KIND_NAMES)
        for name in ("heads", "groups", "key_width", "value_width", "summary"):
            positive(f"attention.{name}", getattr(self, name))
        share("attention.dropout", self.dropout)
        require(
            self.kind == "softmax" or not (self.qk_norm or self.dropout),
            f"{self.kind} attention has no qk_norm and no dropout of weights; "
            f"leave them out, or use attention.kind = softmax",
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedForwardConfig:
    """What a position thinks by itself. `hidden` is four times the width unless given."""

    kind: str = "gelu"
    hidden: int | None = None
    bias: bool = True
    dropout: float = 0.0

    def __post_init__(self) -> None:
        choose("feedforward.kind", self.kind, FEEDFORWARD_NAMES)
        positive("feedforward.hidden", self.hidden)
        share("feedforward.dropout", self.dropout)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvolutionConfig:
    """The convolutions inside a Conformer, Branchformer or E-Branchformer block, and a TCN's.

    Of a TCN only the width counts; 3 is usual there.
    """

    width: int = 31
    norm: str = "layer"

    def __post_init__(self) -> None:
        require(
            self.width > 0 and self.width % 2 == 1,
            f"convolution.width must be odd, so that it has a middle; got {self.width}",
        )
        choose("convolution.norm", self.norm, NORM_NAMES)


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfig:
    """A stack of equal layers: `kind` attention is made of blocks, the others are baselines."""

    kind: str = "attention"
    block: str = "transformer"
    dim: int = 512
    depth: int = 6
    order: str = "pre"
    norm: str = "layer"
    position: str = "rotary"
    max_length: int = 1024
    dropout: float = 0.1
    depth_dropout: float = 0.0
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    feedforward: FeedForwardConfig = field(default_factory=FeedForwardConfig)
    convolution: ConvolutionConfig = field(default_factory=ConvolutionConfig)

    def __post_init__(self) -> None:
        choose("kind", self.kind, STACK_NAMES)
        choose("block", self.block, BLOCK_NAMES)
        choose("order", self.order, ORDER_NAMES)
        choose("norm", self.norm, NORM_NAMES)
        choose("position", self.position, POSITION_NAMES)
        for name in ("dim", "depth", "max_length"):
            positive(name, getattr(self, name))
        at_most("depth", self.depth, DEEPEST)
        share("dropout", self.dropout)
        share("depth_dropout", self.depth_dropout)
        fine = POSITIONS_OF_KIND.get(self.attention.kind, POSITION_NAMES)
        require(
            self.kind != "attention" or self.position in fine,
            f"{self.attention.kind} attention cannot apply {self.position} positions; "
            f"choose from {', '.join(fine)}, or attention.kind = softmax",
        )

    @property
    def hidden(self) -> int:
        """Width of the feed-forward nets."""
        return self.feedforward.hidden or 4 * self.dim


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontendConfig:
    """How samples become vectors.

    Args:
        bins: Mel bins of a frame of sound (subsampling, resnet).
        factor: How many frames become one vector, a power of two (subsampling, resnet).
        hidden: Width inside (resnet).
        channels: Colours of an image (patches).
        patch: Side of a square cut from an image of this height and width (patches).
        grams: The longest n-gram, in tokens (ngrams).
        buckets: How many vectors the n-grams share (ngrams).
    """

    kind: str = "tokens"
    bins: int = 80
    factor: int = 4
    hidden: int = 256
    channels: int = 3
    patch: int = 16
    height: int = 224
    width: int = 224
    grams: int = 2
    buckets: int = 100_000

    def __post_init__(self) -> None:
        choose("frontend.kind", self.kind, FRONTEND_NAMES)
        for name in ("bins", "hidden", "channels", "patch", "height", "width", "buckets"):
            positive(f"frontend.{name}", getattr(self, name))
        require(
            self.grams > 1,
            f"frontend.grams must be 2 or more, got {self.grams}; frontend.kind = tokens has none",
        )
        power = self.factor > 1 and self.factor & (self.factor - 1) == 0
        require(power, f"frontend.factor must be 2, 4, 8 ...; got {self.factor}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """A whole model: an encoder, a decoder, or both, and how samples enter and tokens leave.

    Args:
        pool: How a classifier makes one vector of a sequence.
        scale: Whether embeddings are multiplied by the square root of their width.
        tie: Whether the output layer has the weights of the embedding it answers in.
        share: Whether the encoder and the decoder read with one embedding (one vocabulary).
    """

    frontend: FrontendConfig = field(default_factory=FrontendConfig)
    encoder: StackConfig | None = None
    decoder: StackConfig | None = None
    pool: str = "mean"
    scale: bool = True
    tie: bool = True
    share: bool = False

    def __post_init__(self) -> None:
        require(
            self.encoder is not None or self.decoder is not None,
            "a model needs an encoder, a decoder, or both; got neither",
        )
        require(
            not self.share or (self.encoder is not None and self.decoder is not None),
            "share = true needs both an encoder and a decoder",
        )
        require(
            not self.share or self.frontend.kind == "tokens",
            f"share = true needs a frontend of tokens, got {self.frontend.kind}",
        )
        choose("pool", self.pool, POOL_NAMES)
        if self.share and self.encoder is not None and self.decoder is not None:
            require(
                self.encoder.dim == self.decoder.dim,
                f"share = true needs one width, got an encoder of {self.encoder.dim} and a decoder "
                f"of {self.decoder.dim}; make them equal",
            )


SIZES: dict[str, dict[str, int]] = {
    "tiny": {"dim": 64, "heads": 4, "depth": 2},
    "small": {"dim": 256, "heads": 4, "depth": 4},
    "base": {"dim": 512, "heads": 8, "depth": 6},
    "large": {"dim": 1024, "heads": 16, "depth": 6},
}


def stack_of_size(size: str, **settings: Any) -> StackConfig:
    """A stack by the one dial; feed-forward nets are four times as wide as the stack."""
    choose("size", size, tuple(SIZES))
    numbers = dict(SIZES[size])
    attention = AttentionConfig(heads=numbers.pop("heads"))
    return StackConfig(**{"attention": attention, **numbers, **settings})


def encoder_decoder_of_size(size: str, **settings: Any) -> ModelConfig:
    """An encoder-decoder; `base` has the paper's sizes: 512, 8 heads, 6 + 6 layers, 2048."""
    stack = stack_of_size(size, **settings)
    return ModelConfig(encoder=stack, decoder=stack)
