"""The shape of a model: nested frozen records, checked once on creation.

The lists of names are literal, so that a command line can show them without importing torch; a test
holds them equal to the dicts they stand for.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from glassformer.config.checks import above_zero, at_most, choose, positive, require, share
from glassformer.config.layers import (
    POSITION_NAMES,
    POSITIONS_OF_KIND,
    AttentionConfig,
    ConvolutionConfig,
    FeedForwardConfig,
    NormConfig,
    PositionConfig,
)
from glassformer.config.own_code import is_own
from glassformer.config.values import Values, build, merge_values

ORDER_NAMES = ("pre", "post", "sandwich")
BLOCK_NAMES = ("transformer", "conformer", "branchformer", "e-branchformer")
STACK_NAMES = ("attention", "gru", "lstm", "tcn")
FRONTEND_NAMES = ("tokens", "ngrams", "subsampling", "conv1d", "resnet", "patches")
PATCH_POSITION_NAMES = ("learned", "sinusoidal")
POOL_NAMES = ("mean", "max", "first", "attention")
MOST_MEMBERS = 32  # each takes as long as a whole network
NGRAMS_NAMES = ("auto", "no", "yes")
DEEPEST = 10_000  # layers; more take minutes to build


@dataclass(frozen=True, kw_only=True, slots=True)
class StackConfig:
    """A stack of identical layers: blocks with attention if `kind` is `attention`, else a baseline.

    Args:
        kind: Kind of layer: `attention`, `gru`, `lstm` or `tcn`.
        block: Kind of block of an `attention` stack: `transformer`, `conformer`, `branchformer` or
            `e-branchformer`.
        dim: Width of the vectors.
        depth: Number of layers.
        order: Where the norms stand: before each sublayer (`pre`), after it (`post`) or both
            (`sandwich`).
        parallel: Whether the sublayers of a transformer block run in parallel on its input, instead
            of one after the other. Wang and Komatsuzaki, "GPT-J-6B", 2021.
        max_length: The longest sequence, for learned positions and linformer, whose parameters
            depend on it.
        dropout: Share of the activations dropped in training.
        depth_dropout: Share of the rows that skip a sublayer in training (stochastic depth).
    """

    kind: str = "attention"
    block: str = "transformer"
    dim: int = 512
    depth: int = 6
    order: str = "pre"
    parallel: bool = False
    norm: NormConfig = field(default_factory=NormConfig)
    position: PositionConfig = field(default_factory=PositionConfig)
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
        for name in ("dim", "depth", "max_length"):
            positive(name, getattr(self, name))
        at_most("depth", self.depth, DEEPEST)
        share("dropout", self.dropout)
        share("depth_dropout", self.depth_dropout)
        require(
            not self.parallel or self.order != "post",
            "parallel = true adds all sublayers at once, so no norm can follow each; use order = "
            "pre or sandwich",
        )
        allowed = POSITIONS_OF_KIND.get(self.attention.kind, POSITION_NAMES)
        require(
            self.kind != "attention" or self.position.kind in allowed,
            f"{self.attention.kind} attention does not support {self.position.kind} positions; "
            f"choose from {', '.join(allowed)}, or attention.kind = softmax",
        )

    def layer(self, number: int) -> "StackConfig":
        """The settings of one layer, counted from 0: those of the stack, with its own window.

        >>> stack = StackConfig(attention=AttentionConfig(window=(128, 128, 0)))
        >>> [stack.layer(number).attention.window for number in range(stack.depth)]
        [128, 128, 0, 128, 128, 0]
        """
        windows = self.attention.windows
        window = windows[number % len(windows)]
        return replace(self, attention=replace(self.attention, window=window))

    @property
    def hidden(self) -> int:
        """Width of the feed-forward nets."""
        return self.feedforward.hidden or 4 * self.dim


@dataclass(frozen=True, kw_only=True, slots=True)
class FrontendConfig:
    """The frontend, which turns samples into vectors.

    Args:
        kind: `tokens`, `ngrams`, `subsampling`, `conv1d`, `resnet` or `patches`; or a class of your
            own as `module:Class` (docs/guides/custom-modalities.md).
        bins: Mel bins per audio frame (subsampling, conv1d, resnet).
        factor: Number of frames that become one vector, a power of two (subsampling, conv1d,
            resnet).
        hidden: Inner width (conv1d, resnet).
        channels: Channels of an image (patches), or of a sequence (a frontend of your own).
        patch: Side of a square patch of an image (patches).
        height: Height of an image in pixels (patches).
        width: Width of an image in pixels (patches).
        position: Positions of the patches: `learned` (a vector for each) or `sinusoidal` (waves
            along rows and columns) (patches).
        grams: The longest n-gram, in tokens (ngrams).
        buckets: Number of vectors that n-grams are hashed to (ngrams).
        word_grams: The longest n-gram, in words, of every second member of an ensemble, which then
            uses words where the others use characters; 0 if all members use the same tokens
            (ngrams).
    """

    kind: str = "tokens"
    bins: int = 80
    factor: int = 4
    hidden: int = 256
    channels: int = 3
    patch: int = 16
    height: int = 224
    width: int = 224
    position: str = "learned"
    grams: int = 2
    buckets: int = 100_000
    word_grams: int = 0

    def __post_init__(self) -> None:
        if not is_own(self.kind):
            choose("frontend.kind", self.kind, FRONTEND_NAMES)
        choose("frontend.position", self.position, PATCH_POSITION_NAMES)
        for name in ("bins", "hidden", "channels", "patch", "height", "width", "buckets"):
            positive(f"frontend.{name}", getattr(self, name))
        require(
            self.grams > 1,
            f"frontend.grams must be 2 or more, got {self.grams}; frontend.kind = tokens has none",
        )
        words = self.word_grams
        require(words >= 0, f"frontend.word_grams must be 0 or more, got {words}")
        require(
            self.buckets > 1 or not words,
            "half of frontend.buckets is for single words; set it to 2 or more",
        )
        power = self.factor > 1 and self.factor & (self.factor - 1) == 0
        require(power, f"frontend.factor must be 2, 4, 8 ...; got {self.factor}")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelConfig:
    """A model: an encoder, a decoder, or both, with its frontend and output layer.

    Args:
        pool: How a classifier pools a sequence into one vector: `mean`, `max`, `first` or
            `attention`.
        members: Number of identically shaped networks in a classifier, whose outputs are averaged.
        ngrams: Whether a text classifier also has a linear model of n-grams: `auto`, `no` or `yes`;
            `auto` decides by the validation rows.
        scale: Whether embeddings are multiplied by the square root of their width.
        softcap: Limits the scores of tokens to ± this value, by limit * tanh(score / limit); none
            for no limit.
        tie: Whether the output layer shares the weights of the output embedding.
        share: Whether encoder and decoder share one embedding, and thus one vocabulary.
    """

    frontend: FrontendConfig = field(default_factory=FrontendConfig)
    encoder: StackConfig | None = None
    decoder: StackConfig | None = None
    pool: str = "mean"
    members: int = 1
    ngrams: str | bool = "auto"  # true and false are refused by its choices, not by their type
    scale: bool = True
    softcap: float | None = None
    tie: bool = True
    share: bool = False

    def __post_init__(self) -> None:
        require(
            self.encoder is not None or self.decoder is not None,
            "a model needs an encoder, a decoder, or both; got neither",
        )
        choose("pool", self.pool, POOL_NAMES)
        positive("members", self.members)
        at_most("members", self.members, MOST_MEMBERS)
        given = self.ngrams
        choose("ngrams", given if isinstance(given, str) else str(given).lower(), NGRAMS_NAMES)
        above_zero("softcap", self.softcap)
        if self.share:
            widths = [stack.dim for stack in (self.encoder, self.decoder) if stack is not None]
            require(
                self.frontend.kind == "tokens" and len(widths) == 2 and len({*widths}) == 1,
                f"share = true needs a frontend of tokens, and an encoder and a decoder of one "
                f"width; got {self.frontend.kind} and widths of {widths}",
            )


SIZES: dict[str, dict[str, int]] = {
    "tiny": {"dim": 64, "heads": 4, "depth": 2},
    "small": {"dim": 256, "heads": 4, "depth": 4},
    "base": {"dim": 512, "heads": 8, "depth": 6},
    "large": {"dim": 1024, "heads": 16, "depth": 6},
}

STYLES: dict[str, Values] = {  # each sets all that the others set, so that the last one wins
    "gpt2": {
        "order": "pre",
        "norm": "layer",
        "position": "learned",
        "attention": {"bias": True, "kv_heads": "none"},
        "feedforward": {"kind": "gelu-tanh", "bias": True},
    },
    "llama": {
        "order": "pre",
        "norm": "rms",
        "position": "rotary",
        "attention": {"bias": False, "kv_heads": 2},
        "feedforward": {"kind": "swiglu", "bias": False},
    },
}


def stack_of_size(size: str, *, style: str | None = None, **settings: Any) -> StackConfig:
    """A stack of a named size; feed-forward nets are four times as wide as the stack.

    Args:
        style: A preset in STYLES: GPT-2's (Radford et al., 2019), Llama's (Touvron et al., 2023).
    """
    choose("size", size, tuple(SIZES))
    numbers = dict(SIZES[size])
    values = {"attention": {"heads": numbers.pop("heads")}, **numbers}
    preset = {} if style is None else STYLES[style]
    return build(StackConfig, merge_values(merge_values(values, preset), settings))


def encoder_decoder_of_size(size: str, **settings: Any) -> ModelConfig:
    """An encoder-decoder; `base` has the paper's sizes: 512, 8 heads, 6 + 6 layers, 2048."""
    stack = stack_of_size(size, **settings)
    return ModelConfig(encoder=stack, decoder=stack)
