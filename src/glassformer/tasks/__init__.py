"""Jobs, one folder each: what its data is, which model learns it, and how it is scored.

about        what is known about a job before it is loaded
job          the record of its parts: schema, task, predictor, reporter
task         what training needs
predictor    predictions for new inputs
served       what a predictor can do beside predicting, for a server
reporter     scores, compared with a baseline
explainer    what of a prediction can be explained
extension    more samples, made with another run
first_stage  another job that may train first
shared/      what several jobs share

classify/    one or more labels for a text
recognise/   one or more labels for an image
pretrain/    predict masked words in raw text
generate/    continue texts: a language model
transcribe/  recordings of speech to text
translate/   sequences to sequences: sentences, dates, words to phonemes
recommend/   ratings of items, and the next items of a user

JOBS finds a job by name and loads it when it is used. Another package adds a job through the
entry point group `glassformer.jobs`, whose value is the job's `About`: `morse = "my_morse:ABOUT"`.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from glassformer.errors import GlassformerError, unknown
from glassformer.tasks.about import About, wish

if TYPE_CHECKING:
    from glassformer.tasks.job import Job

GROUP = "glassformer.jobs"
BUILT_IN = (
    *("classify", "recognise", "pretrain", "generate", "transcribe", "translate"),
    "recommend",
)

NO_JOB = (  # words for what nothing here does
    wish(
        "ner, tag, tags, tagging, tagger, pos, pos tagging, token classification, entity, "
        "entities, named entities, named entity recognition, span, spans, extract, extraction, "
        "parse, parsing, chunk, segment",
        "no job marks words or spans of a text yet; `classify` gives labels to whole texts, and "
        "for words there is for example spaCy",
    )
    | wish(
        "tts, speak, speech synthesis, text to speech, synthesise, synthesize",
        "no job makes sounds; `transcribe` writes down recordings",
    )
    | wish(
        "draw, paint, diffusion, text to image, caption, captioning, image captioning",
        "no job makes pictures, or texts about them; `recognise` gives labels to images",
    )
    | wish(
        "forecast, forecasting, time series, timeseries, anomaly, anomaly detection, outliers",
        "no job forecasts numbers or finds unusual ones; use another library",
    )
    | wish(
        "finetune, fine tune, finetuning, fine tuning",
        "it is an option rather than a job: train the job of your data with --from RUN",
    )
)


class Jobs(Mapping[str, "Job"]):
    """Every job by name, built-in ones first; each is imported when it is first used.

    Attributes:
        loaded: Jobs already imported; a job may also be added here directly.
    """

    def __init__(self) -> None:
        self.loaded: dict[str, Job] = {}

    def __iter__(self) -> Iterator[str]:
        yield from self._names()

    def __len__(self) -> int:
        return len(self._names())

    def __contains__(self, name: object) -> bool:
        return name in self._names()

    def __getitem__(self, name: str) -> "Job":
        if name not in self.loaded:
            where = self.about(name).job
            module, _, attribute = where.partition(":")
            with _loading(name, where):
                self.loaded[name] = getattr(import_module(module), attribute)
        return self.loaded[name]

    def about(self, name: str) -> About:
        """The `About` of a job, without loading the rest of it."""
        if name in self.loaded:
            return self.loaded[name].about
        if name in BUILT_IN:
            found: About = import_module(f"glassformer.tasks.{name}.about").ABOUT
            return found
        entry = _entry_points()[name]
        with _loading(name, entry.value):
            found = entry.load()
            if found.name != name:
                raise ValueError(f"its About is named {found.name!r}")
        return found

    def wishes(self) -> dict[str, tuple[str, str]]:
        """Words that are typed for a job: the job that they mean, or none, and advice."""
        found = {word: ("", advice) for word, advice in NO_JOB.items()}
        for name in self:
            with suppress(GlassformerError):  # a package's job that cannot be loaded
                found |= {word: (name, one) for word, one in self.about(name).wishes.items()}
        return found

    def is_wish(self, name: str) -> bool:
        """Whether this is a word for a job, or for what no job does."""
        return as_wish(name) in self.wishes()

    def refuse_unknown(self, name: str) -> None:
        """Refuse a name that is no job's, with the job that is meant or what to do instead."""
        if name in self:
            return
        meant, advice = self.wishes().get(as_wish(name), ("", ""))
        if advice:
            raise GlassformerError(f"there is no job {name!r}: {advice}")
        if meant:
            about = self.about(meant)
            raise GlassformerError(
                f"unknown job {name!r}; did you mean {meant!r}? {about.summary} The jobs are "
                f"{', '.join(self)}"
            )
        raise GlassformerError(unknown("job", name, self))

    def _names(self) -> dict[str, None]:
        return dict.fromkeys((*BUILT_IN, *_entry_points(), *self.loaded))


def as_wish(name: str) -> str:
    """A word as wishes list it.

    >>> as_wish("Fine-tune")
    'fine tune'
    """
    return " ".join(re.split(r"[\W_]+", name.casefold())).strip()


@contextmanager
def _loading(name: str, where: str) -> Iterator[None]:
    """Report in one line that a job of another package cannot be loaded."""
    try:
        yield
    except Exception as error:
        if name in BUILT_IN:
            raise
        raise GlassformerError(
            f"the job {name!r} cannot be loaded from {where} ({error}); upgrade or uninstall the "
            f"package that provides it"
        ) from error


@cache
def _entry_points() -> dict[str, EntryPoint]:
    """The jobs of other packages, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


JOBS = Jobs()
