"""One word for a stack: `model.kind=gru`, `model.encoder=lstm`, `model.decoder=transformer`.

A word stands for the settings below and lies where it was said: what is set after it, such as
`model.encoder.depth=2`, changes the rest of the stack.
"""

from collections.abc import Collection

from glassformer.config import choose, require
from glassformer.config.values import Values, laid_over
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS

WORDS: dict[str, Values] = {
    "transformer": {"kind": "attention"},
    "attention": {"kind": "attention"},
    "gru": {"kind": "gru"},
    "lstm": {"kind": "lstm"},
    "tcn": {"kind": "tcn", "convolution": {"width": 3}},
}
KINDS = {
    "encoder": ("transformer", "attention", *BASELINE_ENCODERS),
    "decoder": ("transformer", "attention", *BASELINE_DECODERS),
}


def spelt_out(values: Values, stacks: Collection[str]) -> Values:
    """Settings with words for stacks as settings of those stacks.

    >>> spelt_out({"model": {"kind": "gru", "tie": False}}, ["encoder"])
    {'model': {'encoder': {'kind': 'gru'}, 'tie': False}}

    Args:
        stacks: Those that the job's model has; `model.kind` is said of all of them.
    """
    model = values.get("model")
    if not isinstance(model, dict):
        return values
    made = {key: value for key, value in model.items() if key != "kind"}
    for stack in KINDS:
        if isinstance(made.get(stack), str) and made[stack] != "none":
            made[stack] = settings_of(f"model.{stack}", stack, made[stack])
    if "kind" in model:
        both = {stack: settings_of("model.kind", stack, model["kind"]) for stack in stacks}
        made = laid_over(both, made)
    return values | {"model": made}


def settings_of(name: str, stack: str, word: object) -> Values:
    """What a word means for a stack; `name` is the setting that said it."""
    require(isinstance(word, str), f"{name} must be a word such as gru, got {word!r}")
    what = name if name != "model.kind" else f"{name} of the {stack}"
    choose(what, str(word), KINDS[stack])
    return WORDS[str(word)]
