"""An optional stage before a job's own training: another job on the same samples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from glassformer.config.run import Config
from glassformer.config.values import Values


@dataclass(frozen=True, kw_only=True, slots=True)
class FirstStage:
    """What a job declares about the stage before its own.

    Attributes:
        job: The name of the job that trains first; training continues from its weights.
        files: Files of the run folder that both stages need, such as the tokenizer.
        settings: The first job's own settings, from the configuration of the run.
        objection: Why it cannot help, given the configuration and the opened task (None before
            there are samples); empty if it might.
    """

    job: str
    files: tuple[str, ...]
    settings: Callable[[Config], Values]
    objection: Callable[[Config, Any], str]
