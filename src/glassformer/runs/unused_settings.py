"""Refuses settings that would have no effect, which nobody would notice otherwise."""

from glassformer.config.decoding import DecodeConfig
from glassformer.config.run import Config
from glassformer.config.unused import covers, refuse_unused_of_model, setting_names
from glassformer.config.values import Values
from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS
from glassformer.tasks.shared.generation import refuse_unused


def refuse_unused_settings(settings: Values, config: Config) -> None:
    """Refuse settings that the job, the model or the decoding method ignores."""
    job = JOBS[config.job]
    for name in setting_names(settings):
        if covers(job.unused, name):
            raise GlassformerError(f"{name} has no effect on {job.name}; leave it out")
    refuse_unused_of_model(settings.get("model", {}), config.model, job.model)
    decode, resolved = settings.get("task", {}).get("decode"), getattr(config.task, "decode", None)
    if decode and isinstance(resolved, DecodeConfig):
        refuse_unused(decode, resolved.method, "task.decode")
