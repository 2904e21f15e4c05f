"""More to learn from, made by another run: what a job declares, and what it is handed.

A job never opens a run. It names its companions, `runs` opens them, and the job makes samples with
what they predict.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from glassformer.config.run import Config
from glassformer.data.ingest import Seen
from glassformer.data.samples import Samples
from glassformer.tasks.predictor import Prediction


@dataclass(frozen=True, kw_only=True, slots=True)
class Companion:
    """Another run, opened.

    Attributes:
        path: As it was named.
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
    """Samples with more of them in the training split.

    Attributes:
        rows: How many were added.
        sentences: What was done, for a person.
        seconds: What the rest would take, where only some was made for a plan.
        notes: What a plan's numbers rest on.
    """

    samples: Samples
    rows: int
    sentences: list[str]
    seconds: float = 0.0
    notes: tuple[str, ...] = ()


class Extension(ABC):
    """Makes more training samples, where the settings ask for it."""

    @abstractmethod
    def companions(self, config: Config) -> Mapping[str, str]:
        """The runs it needs, name to path; none where nothing is to be added."""

    @abstractmethod
    def extend(
        self,
        config: Config,
        samples: Samples,
        companions: Mapping[str, Companion],
        *,
        seen: Seen,
        limit: float | None = None,
    ) -> Extended:
        """The samples with more of them.

        Args:
            seen: Called now and then with the number of rows added.
            limit: Seconds after which the rest is only estimated, for a plan; None makes all.
        """
