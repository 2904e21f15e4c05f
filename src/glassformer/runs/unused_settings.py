"""Settings that were asked for and would do nothing: refused, or else nobody would notice."""

from glassformer.config.run import Config
from glassformer.config.unused import refuse_unused_of_model
from glassformer.config.values import Values
from glassformer.tasks import JOBS
from glassformer.tasks.shared.generation import refuse_unused


def refuse_unused_settings(asked: Values, config: Config) -> None:
    """Refuse what was asked of a model or of a search that does not go by it."""
    refuse_unused_of_model(asked.get("model", {}), config.model, JOBS[config.job].model)
    if decode := asked.get("task", {}).get("decode"):
        refuse_unused(decode, config.task.decode.method, "task.decode")
