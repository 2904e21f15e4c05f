"""The verb `doctor`: examine raw data for problems before training."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from glassformer.config.run import Config
from glassformer.data.doctor.examination import Examination, examine
from glassformer.data.doctor.reading import Reading
from glassformer.errors import GlassformerError
from glassformer.runs.arguments import Data, Settings, in_words, train_request
from glassformer.runs.display import Display
from glassformer.runs.guessing import Candidate, candidates
from glassformer.runs.request import TrainRequest
from glassformer.tasks import JOBS


@in_words
def doctor(
    *data: Data,
    job: str | None = None,
    valid: Data = (),
    test: Data = (),
    columns: Mapping[str, str] | str | None = None,
    header: bool | str | None = None,
    group: str | None = None,
    set: Settings = (),
    quiet: bool = False,
) -> Examination:
    """Examine raw data: `glassformer.doctor("reviews.csv").findings`.

    Args:
        data: Files, folders or names of the catalog, or rows, as for `train`.
        job: What the data are for; by default guessed, see `likely`.
        valid, test, columns, header, group, set: As for `train`.
        quiet: Whether to suppress progress output.
    """
    given = {"valid": valid, "test": test, "columns": columns, "settings": set}
    given |= {"header": header, "group": group}
    choices = resolved(train_request(name, data, **given) for name in ([job] if job else JOBS))
    fitting = candidates({name: config.data for name, config in choices.items()})
    chosen = likely(fitting) if job is None else fitting[0]
    config, schema = choices[chosen.job], chosen.schema
    with Display(quiet=quiet).counting("reading rows") as seen:
        reading = Reading(config.data, schema, chosen.encodings)
        found = examine(reading, schema.checks(config), seed=config.seed, seen=seen)
    rivals = also_fitting(fitting, chosen) if job is None else []
    fit = "fits" if len(rivals) == 1 else "fit"
    jobs = [f"the job was guessed; {' and '.join(rivals)} {fit} as well: choose with --job"]
    return replace(found, job=config.job, guesses=[*(jobs if rivals else ()), *found.guesses])


def resolved(requests: Iterable[TrainRequest]) -> dict[str, Config]:
    """The configurations for those jobs that have the given settings, by job."""
    found, errors = {}, []
    for request in requests:
        try:
            found[request.job] = request.resolve(provisional=True)
        except GlassformerError as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def likely(choices: Sequence[Candidate]) -> Candidate:
    """The job that fits the first file.

    That is the job whose schema recognises it, else the first job that finds its columns.
    """
    for choice in choices:
        if choice.recognised:
            return choice
    errors = []
    for choice in choices:
        try:
            _ = choice.source
        except GlassformerError as error:
            errors.append(error)
        else:
            return choice
    raise errors[0]


def also_fitting(choices: Sequence[Candidate], chosen: Candidate) -> list[str]:
    """Other jobs that fit: one that finds a column for its answers by name, or that reads the same.

    Where nothing was found that could be an answer, any job that finds one fits as well.
    """
    others = [choice for choice in choices if choice is not chosen]
    for choice in others:
        if choice.answers_named:
            return [choice.job]
    inputs, answers = chosen.columns_read
    found = []
    for choice in others:
        their_inputs, their_answers = choice.columns_read
        same = bool(their_inputs) and their_inputs == inputs
        if (same and bool(their_answers) == bool(answers)) or (their_answers and not answers):
            found.append(choice.job)
    return found[:2]
