"""Jobs, one folder each: what a person's data is, which model learns it, and how good it is.

about        what a job tells before it is loaded
job          the record of its parts: schema, task, predictor, reporter
task         what training needs
predictor    what it says about new inputs
reporter     how good it is, beside an honest baseline
extension    more samples, made with the help of another run
first_stage  another job that may train first
shared/      what several jobs share

classify/    one label, or several, for a text
pretrain/    fill gaps in raw text
translate/   sequences to sequences: sentences, dates, words to phonemes

JOBS finds a job by name and loads it when it is used. A package of one's own adds a job through the
entry point group `glassformer.jobs`, whose value is the job's `About`: `morse = "my_morse:ABOUT"`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from glassformer.errors import GlassformerError
from glassformer.tasks.about import About

if TYPE_CHECKING:
    from glassformer.tasks.job import Job

GROUP = "glassformer.jobs"
BUILT_IN = ("classify", "pretrain", "translate")


class Jobs(Mapping[str, "Job"]):
    """Every job by name, those of the package first; each is imported when it is first used.

    Attributes:
        loaded: Those in memory; a job may also be put there by hand.
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
        """What a job tells about itself, without loading the rest of it."""
        if name in self.loaded:
            return self.loaded[name].about
        if name in BUILT_IN:
            found: About = import_module(f"glassformer.tasks.{name}.about").ABOUT
            return found
        entry = _from_others()[name]
        with _loading(name, entry.value):
            found = entry.load()
            if found.name != name:
                raise ValueError(f"it is called {found.name!r} there")
        return found

    def _names(self) -> dict[str, None]:
        return dict.fromkeys((*BUILT_IN, *_from_others(), *self.loaded))


@contextmanager
def _loading(name: str, where: str) -> Iterator[None]:
    """Say in one line that a job of another package cannot be used."""
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
def _from_others() -> dict[str, EntryPoint]:
    """The jobs of other packages, by name."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


JOBS = Jobs()
