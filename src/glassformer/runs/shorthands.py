"""One word for a stack: `model.kind=gru`, `model.encoder=lstm`, `model.decoder=llama`.

A word expands to the settings below, at the place where it was written: a later setting, such as
`model.encoder.depth=2`, overrides part of it.
"""

from collections.abc import Collection

from glassformer.config import STYLES, choose, require
from glassformer.config.values import Values, merge_values
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS

WORDS: dict[str, Values] = {
    "transformer": {"kind": "attention"},
    "attention": {"kind": "attention"},
    "gru": {"kind": "gru"},
    "lstm": {"kind": "lstm"},
    "tcn": {"kind": "tcn", "convolution": {"width": 3}},
    **{style: {"kind": "attention", **settings} for style, settings in STYLES.items()},
}
KINDS = {
    "encoder": ("transformer", "attention", *STYLES, *BASELINE_ENCODERS),
    "decoder": ("transformer", "attention", *STYLES, *BASELINE_DECODERS),
}


def expand_shorthands(values: Values, stacks: Collection[str]) -> Values:
    """Replace the words for stacks by the settings they stand for.

    >>> expand_shorthands({"model": {"kind": "gru", "tie": False}}, ["encoder"])
    {'model': {'encoder': {'kind': 'gru'}, 'tie': False}}

    Args:
        stacks: The stacks of the job's model; `model.kind` applies to all of them.
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
        made = merge_values(both, made)
    return values | {"model": made}


def settings_of(name: str, stack: str, word: object) -> Values:
    """The settings that a word stands for; `name` is the setting that held it."""
    require(isinstance(word, str), f"{name} must be a word such as gru, got {word!r}")
    what = name if name != "model.kind" else f"{name} of the {stack}"
    choose(what, str(word), KINDS[stack])
    return WORDS[str(word)]
