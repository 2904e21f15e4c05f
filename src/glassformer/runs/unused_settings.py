"""Settings that were asked for and would do nothing: refused, or else nobody would notice."""

from collections.abc import Mapping
from typing import Any

from glassformer.config.run import Config
from glassformer.config.values import Values
from glassformer.errors import GlassformerError
from glassformer.models.baselines import BASELINE_DECODERS, BASELINE_ENCODERS
from glassformer.tasks.shared.generation import refuse_unused

BASELINES: dict[str, Mapping[str, Any]] = {
    "encoder": BASELINE_ENCODERS,
    "decoder": BASELINE_DECODERS,
}


def refuse_idle_settings(asked: Values, config: Config) -> None:
    """Refuse what was asked of a stack or of a search that does not go by it."""
    for stack, kinds in BASELINES.items():
        settings, made = asked.get("model", {}).get(stack), getattr(config.model, stack)
        if not isinstance(settings, Mapping) or made is None or made.kind not in kinds:
            continue
        takes = kinds[made.kind].takes
        for name in settings:
            if name not in ("kind", *takes):
                raise GlassformerError(
                    f"model.{stack}.{name} does nothing with model.{stack}.kind = {made.kind}, "
                    f"which goes by {', '.join(takes)}; leave it out"
                )
    if decode := asked.get("task", {}).get("decode"):
        refuse_unused(decode, config.task.decode.method, "task.decode")
