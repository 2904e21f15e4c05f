"""What a job declares of other runs: a stage before its own, and more training samples.

A job never opens a run. It names its companions, `runs` opens them, and the job makes samples from
their predictions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from glassformer.config.run import Config
from glassformer.config.values import Values
from glassformer.data.ingest import Seen
from glassformer.data.samples import Samples
from glassformer.tasks.predictor import Prediction


@dataclass(frozen=True, kw_only=True, slots=True)
class Companion:
    """Another run, opened.

    Attributes:
        path: The path, as given.
        job: The name of its job.
        predict: Its predictions, in the order of the inputs.
    """

    path: str
    job: str
    task: Any
    model: nn.Module
    predict: Callable[[Iterable[Any]], Iterator[Prediction]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Extended:
    """Samples with additions to the training split.

    Attributes:
        rows: How many were added.
        sentences: What was done, as text.
    """

    samples: Samples
    rows: int
    sentences: list[str]


class Extension(ABC):
    """Makes more training samples, if the settings request it."""

    @abstractmethod
    def companions(self, config: Config) -> Mapping[str, str]:
        """The runs it needs, name to path; empty if nothing is to be added."""

    @abstractmethod
    def extend(
        self, config: Config, samples: Samples, companions: Mapping[str, Companion], seen: Seen
    ) -> Extended:
        """The samples with the additions; `seen` is called with the number of rows added."""


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
