"""The verb `doctor`: examine raw data for problems before training."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from glassformer.data.columns import GROUP, SPLIT, Columns, normal_name
from glassformer.data.doctor.examination import Examination, examine
from glassformer.data.doctor.reading import Reading
from glassformer.data.rows import Row
from glassformer.errors import GlassformerError
from glassformer.runs.arguments import Data, Settings, in_words, train_request
from glassformer.runs.display import Display
from glassformer.runs.request import TrainRequest
from glassformer.tasks import JOBS


@in_words
def doctor(
    *data: Data,
    job: str | None = None,
    valid: Data = (),
    test: Data = (),
    columns: Mapping[str, str] | str | None = None,
    group: str | None = None,
    set: Settings = (),
    quiet: bool = False,
) -> Examination:
    """Examine raw data: `glassformer.doctor("reviews.csv").findings`.

    Args:
        data: Files, folders or names of the catalog, or rows, as for `train`.
        job: What the data are for; by default guessed, see `likely`.
        valid, test, columns, group, set: As for `train`.
        quiet: Whether to suppress progress output.
    """
    given = {"valid": valid, "test": test, "columns": columns, "group": group, "settings": set}
    choices = [train_request(name, data, **given) for name in ([job] if job else JOBS)]
    request = likely(choices)
    config = request.resolve()
    checks = JOBS[request.job].schema.checks(config)
    with Display(quiet=quiet).counting("reading rows") as seen:
        found = examine(reading_of(request), checks, seed=config.seed, seen=seen)
    rivals = [] if job else also_fitting(choices, request)
    fit = "fits" if len(rivals) == 1 else "fit"
    jobs = [f"the job was guessed; {' and '.join(rivals)} {fit} as well: choose with --job"]
    return replace(found, job=request.job, guesses=[*(jobs if rivals else ()), *found.guesses])


def likely(choices: Sequence[TrainRequest]) -> TrainRequest:
    """The request whose job fits the first file.

    That is the job whose schema recognises it, else the first job that finds its columns.
    """
    for request in choices if len(choices) > 1 else ():
        if recognised(request):
            return request
    errors = []
    for request in choices:
        try:
            reading_of(request).sources[0].open()
        except GlassformerError as error:
            errors.append(error)
        else:
            return request
    raise errors[0]


def also_fitting(choices: Sequence[TrainRequest], chosen: TrainRequest) -> list[str]:
    """Other jobs that fit: one that finds a column for its answers by name, or that reads the same.

    Where nothing was found that could be an answer, any job that finds one fits as well.
    """
    others = [request for request in choices if request.job != chosen.job]
    named = [request.job for request in others if answers_named(request)][:1]
    if named:
        return named
    inputs, answers = columns_read(chosen)
    found = []
    for request in others:
        their_inputs, their_answers = columns_read(request)
        same = bool(their_inputs) and their_inputs == inputs
        if (same and bool(their_answers) == bool(answers)) or (their_answers and not answers):
            found.append(request.job)
    return found[:2]


def columns_read(request: TrainRequest) -> tuple[Columns, Columns]:
    """The columns of a job's inputs and of its answers; none if it cannot read the first row."""
    schema = JOBS[request.job].schema
    answers = {role.name for role in schema.roles if role.answer}
    try:
        source = reading_of(request).sources[0]
        row = next(source.open(), None)
        if row is None or schema.sample(row, source.columns)[1]:
            return {}, {}
    except GlassformerError:
        return {}, {}
    required = {role.name for role in schema.roles if role.required}
    used = {role: column for role, column in source.columns.items() if role in required}
    return (
        {role: column for role, column in used.items() if role not in answers},
        {role: column for role, column in used.items() if role in answers},
    )


def answers_named(request: TrainRequest) -> bool:
    """Whether a job finds all of its columns, and those of its answers by their names."""
    schema = JOBS[request.job].schema
    answers = [role for role in schema.roles if role.answer and role.required]
    try:
        columns = reading_of(request).sources[0].columns
    except GlassformerError:
        return False
    named = [normal_name(columns.get(role.name, "")) in role.names for role in answers]
    return bool(answers) and all(named)


def recognised(request: TrainRequest) -> bool:
    """Whether the first file can only be for this job; columns that are given win."""
    schema = JOBS[request.job].schema

    def rows() -> Iterator[Row]:
        yield from first.open()

    try:
        first = reading_of(request).sources[0]
        roles = {role.name for role in (*schema.roles, GROUP, SPLIT)}
        return {*first.config.columns} <= roles and schema.recognises(
            first.name, first.config, rows()
        )
    except GlassformerError:
        return False


def reading_of(request: TrainRequest) -> Reading:
    """The data, read by the schema of the job."""
    return Reading(request.resolve().data, JOBS[request.job].schema)
