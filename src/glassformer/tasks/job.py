"""A job: all that a run needs to know of one kind of work, in parts that are small objects each.

    about       its name, a sentence, its options; light
    settings    the record of its own settings, and the defaults that suit it
    schema      its data: roles, layouts of its own, what makes two samples the same, checks
    task        what training needs, over the samples of a run folder
    predictor   what it says about new inputs
    reporter    how good it is, and what its report shows
    explainer   what of a prediction can be explained, if anything

To add one, write a folder with a `JOB` and an `about.py`, and list it in `tasks.BUILT_IN`, or name
its About in the entry point group `glassformer.jobs` of a package of your own.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from jaxtyping import UInt64
from torch import nn

from glassformer.config.run import Config
from glassformer.config.values import Values
from glassformer.data.samples import Samples
from glassformer.data.schema import Schema
from glassformer.data.splits import hashed
from glassformer.data.text.tokenizer import Tokenizer
from glassformer.errors import GlassformerError
from glassformer.metrics.units import Units
from glassformer.tasks.about import About
from glassformer.tasks.explainer import Explainer
from glassformer.tasks.extension import Extension, FirstStage
from glassformer.tasks.predictor import Predictor
from glassformer.tasks.reporter import Reporter
from glassformer.tasks.task import Batch, Output, Task

Answers = TypeVar("Answers")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One kind of work.

    Attributes:
        settings: The record of the job's own settings.
        defaults: Settings that suit the job, over those of the records; given whether there is an
            accelerator.
        suited: Settings that suit the samples of a run, over the defaults; given the samples,
            whether there is an accelerator, and the settings that a person chose.
        model: What kind of model it trains, a name in `config.unused.SETTINGS_OF_MODEL`; None for
            one that may go by any setting of a model.
        unused: Settings, or whole tables of them, that have no effect on the job: refused.
        unused_with: The same where it follows from the job's own settings, each with the reason.
        extension: How it makes more training samples with the help of another run, if it can.
        first_stage: The job that may train first, if there is one.
    """

    about: About
    settings: type
    defaults: Callable[[bool], Values]
    schema: Schema
    task: "type[AnyTask]"
    predictor: Callable[[Any], Predictor[Any, Any]]
    reporter: type[Reporter[Any, Any]]
    suited: Callable[[Samples, bool, Values], Values] | None = None
    model: str | None = None
    unused: tuple[str, ...] = ()
    unused_with: Callable[[Any], Mapping[str, str]] = lambda settings: {}
    extension: Extension | None = None
    first_stage: FirstStage | None = None
    explainer: Callable[[Any], Explainer[Any, Any]] | None = None

    @property
    def name(self) -> str:
        """The word for it on the command line."""
        return self.about.name


class JobTask(Task[Batch, Output], Generic[Batch, Output, Answers]):
    """A Task over samples in a run folder.

    Attributes:
        default_epochs: How long to train when nobody says.
        fewest_answers: The validation rows from which `calibrate` learns something from the trained
            model's answers to them; 0 if it never does.
        samples: The run's samples, where they are still there.
        own_model: Builds a person's own model instead of the job's.

    Args:
        config: Settled by `prepare`.
        folder: Where `prepare` put what was learned.
        data: Where samples and their index are; None for a job that is only used.
    """

    default_epochs: ClassVar[float]
    fewest_answers: ClassVar[int] = 0

    config: Config
    folder: Path
    samples: Samples | None
    own_model: "Callable[[AnyTask], nn.Module] | None" = None

    @abstractmethod
    def __init__(self, config: Config, folder: Path, data: Path | None) -> None: ...

    @classmethod
    @abstractmethod
    def prepare(cls, config: Config, samples: Samples, folder: Path, origin: Path | None) -> Config:
        """Find out what must be known before training, put it into the folder, settle settings.

        Args:
            origin: Another run to take tokens from.
        """

    def build(self) -> nn.Module:
        """The model with fresh weights: a person's own, or the job's."""
        return self.model() if self.own_model is None else self.own_model(self)

    def start(self, model: nn.Module) -> str | None:
        """Set initial weights that follow from the samples without training, and say which."""
        return None

    @property
    def reader(self) -> Tokenizer | None:
        """The tokenizer of the texts it reads, or, if it reads none, of those it writes."""
        return getattr(self, "tokenizer", None)

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text by `reader`; what it does not know is the unknown token."""
        if self.reader is None:
            raise GlassformerError("this run reads and writes no text, so it has no tokens")
        if not isinstance(text, str):
            raise GlassformerError(f"tokenize takes a text, got {text!r:.60}; give a str")
        return self.reader.pieces(self.reader.encode([text])[0])

    @property
    def vocabulary(self) -> int | None:
        """The number of tokens that `reader` knows, for a model of your own."""
        return None if self.reader is None else self.reader.size

    @abstractmethod
    def index(self, samples: Samples, data: Path) -> None:
        """Turn samples into numbers, once, and put them beside the samples."""

    @abstractmethod
    def answers(self, model: nn.Module, batches: Iterable[Batch]) -> Answers:
        """What the model says about the rows of these batches, in the order of the rows."""

    def calibrate(self, answers: Answers) -> None:
        """Learn from the trained model's answers to validation rows, and put it into the folder."""

    def combine(self, answers: Answers, split: str) -> Answers:
        """The answers of the model to rows of a split, with those of what the run has besides."""
        return answers

    def sampled(self, answers: Answers, split: str) -> Answers:
        """The answers with the units of intervals and tests: groups, where rows have some.

        Answers have a field `units`, and `rows` if they may be of some rows of the split only.
        """
        groups = self.groups(split) if hasattr(answers, "units") else None
        if groups is None:
            return answers
        rows = getattr(answers, "rows", None)
        chosen = groups if rows is None else groups[rows]
        if len(np.unique(chosen)) == len(chosen):
            return answers  # each row is alone
        units = Units(self.group_noun, chosen)
        return replace(answers, units=units)  # type: ignore[type-var]

    def groups(self, split: str) -> UInt64[np.ndarray, " rows"] | None:
        """A number for each row of a split, equal for the rows of one group; None without groups.

        A row without a group is one by itself.
        """
        if self.samples is None:
            return None
        names = [sample.get("group") for sample in self.samples.of(split)]
        if not any(names):
            return None
        keys = (f"group {name}" if name else f"row {n}" for n, name in enumerate(names))
        return np.array([hashed(key) for key in keys], dtype=np.uint64)

    @property
    def group_noun(self) -> str:
        """What a group of rows is called."""
        return "group"

    def lengthened(self, times: int) -> Config | None:
        """The settings to read sequences so many times as long as in training.

        None for a job whose rows are as long as they are.
        """
        return None

    @property
    def relative_work(self) -> float:
        """The work of a step, for each unit of work that its encoder does."""
        return 1.0

    @property
    def needs_network(self) -> bool:
        """Whether its answers come from the trained network; if not, a run does not keep it."""
        return True

    def without_network(self) -> nn.Module:
        """What stands for the network of a run that does not keep it: it says nothing."""
        raise GlassformerError(f"{self.folder}: has no weights; copy the run again")

    def for_timing(self) -> "JobTask[Batch, Output, Answers]":
        """The same job, to be timed with a model that has learned nothing yet.

        One that writes would write on and on: here it stops where a good answer would.
        """
        return self

    def where(self, split: str, row: int) -> str:
        if self.samples is None:
            return super().where(split, row)
        return str(self.samples[int(self.samples.rows(split)[row])]["where"])


AnyTask = JobTask[Any, Any, Any]
