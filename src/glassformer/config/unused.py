"""Settings that a model ignores: they would have no effect, so they are refused.

The lists name the settings in use; a test varies every setting of every model and checks the lists
against what changes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from glassformer.config.model import ModelConfig, StackConfig
from glassformer.errors import GlassformerError

SETTINGS_OF_MODEL = {
    "encoder-decoder": ("frontend", "encoder", "decoder", "scale", "softcap", "tie", "share"),
    "language model": ("decoder", "scale", "softcap", "tie"),
    "masked language model": ("encoder", "scale", "softcap", "tie"),
    "classifier": ("frontend", "encoder", "scale", "pool", "members", "ngrams"),
}
SETTINGS_OF_FRONTEND = {
    "tokens": (),
    "ngrams": ("grams", "buckets", "word_grams"),
    "subsampling": ("bins", "factor"),
    "conv1d": ("bins", "factor", "hidden"),
    "resnet": ("bins", "factor", "hidden"),
    "patches": ("channels", "patch", "height", "width", "position"),
}
EMBEDS = ("tokens", "ngrams")  # frontends to which `scale` applies
RECURRENT = ("dim", "depth", "dropout")
TCN = (*RECURRENT, "depth_dropout", "order", "norm", "convolution.width")
SETTINGS_OF_STACK = {"gru": RECURRENT, "lstm": RECURRENT, "tcn": TCN}
CROSS_ATTENTION = tuple(
    f"attention.{name}"
    for name in (
        *("heads", "kv_heads", "key_width", "value_width", "bias"),
        *("qk_norm", "scale", "softcap", "dropout"),
    )
)


def refuse_unused_of_model(
    given: Mapping[str, Any], config: ModelConfig, model: str | None = None
) -> None:
    """Refuse the first given setting that has no effect.

    Args:
        given: Settings as written by the user, nested, under `model`.
        config: The resolved configuration.
        model: A name in SETTINGS_OF_MODEL; None for a model that may use all of them.
    """
    for name in setting_names(given):
        if why := why_unused(name, config, model):
            raise GlassformerError(f"model.{name} has no effect {why}; leave it out")


def why_unused(name: str, config: ModelConfig, model: str | None = None) -> str | None:
    """Why a setting has no effect; None if it has one."""
    table, _, rest = name.partition(".")
    if model is not None and table not in SETTINGS_OF_MODEL[model]:
        return f"in {'an' if model[0] in 'aeiou' else 'a'} {model}"
    frontend = config.frontend.kind
    if table == "frontend" and rest not in ("", "kind", *SETTINGS_OF_FRONTEND.get(frontend, ())):
        kinds = [kind for kind, used in SETTINGS_OF_FRONTEND.items() if rest in used]
        return f"with model.frontend.kind = {frontend}, only with {', '.join(kinds)}"
    if table == "scale" and config.decoder is None and frontend not in EMBEDS:
        return f"with model.frontend.kind = {frontend}"
    stack = getattr(config, table) if table in ("encoder", "decoder") else None
    if stack is None or not rest:
        return None
    return _why_unused_in_stack(rest, stack, f"model.{table}")


def _why_unused_in_stack(name: str, stack: StackConfig, where: str) -> str | None:
    if stack.kind != "attention":
        used = SETTINGS_OF_STACK[stack.kind]
        if stack.kind == "tcn" and where == "model.decoder":
            used += CROSS_ATTENTION
        if covers(("kind", *used), name):
            return None
        return f"with {where}.kind = {stack.kind}, which uses only {', '.join(used)}"
    block, kind, position = stack.block, stack.attention.kind, stack.position.kind
    if block != "transformer" and name == "parallel":
        return f"with {where}.block = {block}"
    if block == "transformer" and covers(("convolution",), name):
        return f"with {where}.block = transformer"
    if block == "branchformer" and name in ("feedforward.kind", "feedforward.bias"):
        return f"with {where}.block = branchformer"
    if name == "attention.window" and len(stack.attention.windows) > stack.depth:
        return f"from its number {stack.depth + 1} on with {where}.depth = {stack.depth}"
    if kind != "linformer" and name == "attention.summary":
        return f"with {where}.attention.kind = {kind}"
    if kind != "linformer" and position != "learned" and name == "max_length":
        return f"with {where}.position = {position}, which has no limit"
    return None


def covers(settings: tuple[str, ...], name: str) -> bool:
    """Whether a setting is one of these, or inside one of these tables."""
    return any(name == one or name.startswith(f"{one}.") for one in settings)


def setting_names(values: Mapping[str, Any], table: str = "") -> Iterator[str]:
    """The names of all settings given, in full."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from setting_names(value, f"{table}{key}.")
        else:
            yield f"{table}{key}"
