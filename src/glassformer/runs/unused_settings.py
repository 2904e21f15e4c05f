"""Refuses settings that would have no effect, which nobody would notice otherwise."""

from glassformer.config.run import Config
from glassformer.config.unused import refuse_unused_of_model
from glassformer.config.values import Values
from glassformer.tasks import JOBS
from glassformer.tasks.shared.generation import refuse_unused


def refuse_unused_settings(settings: Values, config: Config) -> None:
    """Refuse settings that the model or the decoding method ignores."""
    refuse_unused_of_model(settings.get("model", {}), config.model, JOBS[config.job].model)
    if decode := settings.get("task", {}).get("decode"):
        refuse_unused(decode, config.task.decode.method, "task.decode")
