"""Sizes of models and data: full, as the bars have them, and a miniature for tests."""

from dataclasses import dataclass

from glassformer.config.values import Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """A log-normal distribution of lengths in tokens, cut at `longest`."""

    mean: int
    deviation: int
    longest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """What is trained on what.

    Attributes:
        words: Size of the random language.
        pairs, texts: Numbers of rows.
        sentence: Lengths of a side of a pair.
        review: Lengths of a text; training cuts it at `cut` tokens.
        pair_stack, text_stack: Settings of the encoder and the decoder.
        pair_budgets: Batch sizes that the peer of pairs may choose from; the first is fixed for
            both sides where both have the same.
        pair_default: Our default batch size for as many pairs as there are of news.
        context, contexts, vocabulary: Tokens in a row of the language model, rows in a batch, and
            its vocabulary.
        gpt: Depth, heads and width of the language model.
        recipe: Settings over those of recipes, which are then followed on random data; None
            follows them as they are.
        layers, layer_sizes: Length of the rows through single encoder layers; width and heads.
    """

    words: int
    pairs: int
    texts: int
    sentence: Lengths
    review: Lengths
    cut: int
    pair_stack: Values
    text_stack: Values
    pair_budgets: tuple[int, ...]
    pair_default: int
    text_budget: int
    gap_budget: int
    context: int
    contexts: int
    vocabulary: int
    gpt: tuple[int, int, int]
    recipe: Values | None
    layers: int
    layer_sizes: tuple[tuple[int, int], ...]


FULL = Sizes(
    words=7900,
    pairs=20_000,
    texts=3000,
    sentence=Lengths(mean=25, deviation=15, longest=128),  # as in news, WMT
    review=Lengths(mean=270, deviation=200, longest=2000),  # as in IMDb
    cut=512,
    pair_stack={"dim": 512, "depth": 6, "dropout": 0.1, "attention": {"heads": 8}},
    text_stack={"dim": 512, "depth": 8, "dropout": 0.1, "attention": {"heads": 8}},
    pair_budgets=(16_384, 65_536),
    pair_default=65_536,
    text_budget=16_384,
    gap_budget=32_768,
    context=1024,
    contexts=32,
    vocabulary=50_304,
    gpt=(12, 12, 768),
    recipe=None,
    layers=128,
    layer_sizes=((256, 4), (512, 8)),
)

_TINY = {"dim": 16, "depth": 1, "dropout": 0.1, "attention": {"heads": 2}}
SMALL = Sizes(
    words=60,
    pairs=200,
    texts=120,
    sentence=Lengths(mean=5, deviation=3, longest=11),
    review=Lengths(mean=13, deviation=7, longest=40),
    cut=23,
    pair_stack=_TINY,
    text_stack=_TINY,
    pair_budgets=(128, 256),
    pair_default=384,
    text_budget=128,
    gap_budget=128,
    context=17,
    contexts=3,
    vocabulary=101,
    gpt=(2, 2, 16),
    recipe={"data": {"batch_tokens": 128}},
    layers=7,
    layer_sizes=((16, 2),),
)
