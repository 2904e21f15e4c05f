"""Defaults that suit the texts of a run, on a CPU.

From a few thousand rows, a stack of blocks learns less than a linear model of n-grams does. One
block over tokens and their hashed n-grams learns more, in less time, and makes other mistakes
(docs/dev/log.md, "Defaults by the rows"). Fewer or more texts than were measured keep the general
defaults, and so does an accelerator, on which a stack can be pretrained.
"""

from itertools import islice, product

from glassformer.config.values import Values
from glassformer.data.samples import Samples

FEWEST = 1_000  # training rows
FEWER, FEW = 500_000, 1_500_000  # characters of all texts
LOOKED_AT = 1_000  # texts that tell how long they are
PHRASE, SHORT, SENTENCE, LONG = 30, 60, 250, 600  # characters of a text
LENGTHS = {"steps", "epochs", "time", "flops"}  # of a training
MANY, MOST = 5_000_000, 100_000_000  # characters of all texts


def suited_to(samples: Samples, accelerated: bool, chosen: Values) -> Values:
    """Settings for training rows as many and as long as these; none for other inputs."""
    rows = len(samples.rows("train"))
    if accelerated or "text" not in samples.spools or rows < FEWEST:
        return {}
    seen = list(islice(samples.values("text", "train"), LOOKED_AT))
    length = sum(map(len, seen)) / len(seen)
    if rows * length > MOST:
        return {}
    few, many = rows * length <= FEW, rows * length > MANY
    if few and PHRASE < length <= SENTENCE and can_read_both(chosen):
        found = by_both(epochs=6.0 if rows * length <= FEWER else 4.0)
    else:
        found = by_characters() if length <= SHORT else by_words(many=many)
    if not many:
        found["train"]["refit"] = True  # where rows are few, each counts
    if not many and not LENGTHS & chosen.get("train", {}).keys():
        # the epochs suit them, and those held out are too few to choose among steps
        found["train"] |= {"weights": "last", "patience": "none"}
    found["model"]["members"] = 1 if many else 4 if few else 2
    if length > LONG:
        found["task"] |= {"max_length": 512, "long": "both"}
    return found


def can_read_both(chosen: Values) -> bool:
    """Whether a person's own settings leave several members that read characters."""
    model, task = chosen.get("model", {}), chosen.get("task", {})
    tokenizer = chosen.get("data", {}).get("tokenizer", {})
    kinds = tokenizer.get("kind"), model.get("frontend", {}).get("kind")
    if kinds not in product((None, "characters"), (None, "ngrams")) or model.get("members") == 1:
        return False
    counts_words = "vocabulary" in tokenizer or "max_length" in task
    return kinds[0] == "characters" or not counts_words


def by_characters() -> Values:
    """Names, phrases and short questions say more by their characters."""
    tokens = {"kind": "characters"}
    data = {"batch_tokens": 4096, "token_dropout": 0.1, "tokenizer": tokens}
    return one_block(data, grams=5, buckets=100_000, dropout=0.25, lr=3e-3, epochs=6.0)


def by_both(*, epochs: float) -> Values:
    """Few sentences: one half of an ensemble reads their characters, the other their words."""
    tokens = {"kind": "characters", "lowercase": True}
    data = {"batch_tokens": 8192, "token_dropout": 0.1, "tokenizer": tokens}
    found = one_block(data, grams=5, buckets=100_000, dropout=0.25, lr=3e-3, epochs=epochs)
    found["model"]["frontend"]["word_grams"] = 2
    found["task"]["max_length"] = 512
    return found


def by_words(*, many: bool) -> Values:
    """Sentences and longer texts; many of them need fewer epochs and more n-grams."""
    if many:
        tokens = {"kind": "words", "vocabulary": 30_000}
        data = {"batch_tokens": 8192, "token_dropout": 0.2, "tokenizer": tokens}
        found = one_block(data, grams=2, buckets=200_000, dropout=0.5, lr=1.5e-3, epochs=3.0)
        found["task"]["vectors"] = "ppmi"
        return found
    tokens = {"kind": "words", "vocabulary": 20_000}
    data = {"batch_tokens": 2048, "token_dropout": 0.3, "tokenizer": tokens}
    return one_block(data, grams=2, buckets=50_000, dropout=0.5, lr=3e-3, epochs=6.0)


def one_block(
    data: Values, *, grams: int, buckets: int, dropout: float, lr: float, epochs: float
) -> Values:
    """One block over tokens and their n-grams, with much noise against learning by heart."""
    return {
        "task": {"label_smoothing": 0.1},
        "data": data,
        "model": {
            "pool": "attention",
            "frontend": {"kind": "ngrams", "grams": grams, "buckets": buckets},
            "encoder": {"depth": 1, "dropout": dropout},
        },
        "train": {"epochs": epochs, "ema": 0.99, "patience": 10, "optimiser": {"lr": lr}},
    }
