"""Options that a job declares for its predictor, added to the command `predict`.

The help lists them under the name of their job; a run of another job refuses them.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from typing import Annotated, Any

import typer

from glassformer.errors import GlassformerError
from glassformer.tasks import JOBS
from glassformer.tasks.about import Option

NAMED = 4  # jobs; the title of a panel must fit a line


def declared() -> dict[str, tuple[Option, list[str]]]:
    """Every option by name, with the jobs that have it; a job that cannot be loaded has none."""
    found: dict[str, tuple[Option, list[str]]] = {}
    for job in JOBS:
        with suppress(GlassformerError):
            for option in JOBS.about(job).options:
                found.setdefault(option.name, (option, []))[1].append(job)
    return found


def with_job_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of all jobs to a command that takes **options; its own names stay its own."""

    @wraps(command)
    def with_options(**given: Any) -> None:
        command(**given)

    own = [
        parameter
        for parameter in inspect.signature(command).parameters.values()
        if parameter.kind is not parameter.VAR_KEYWORD
    ]
    names = {parameter.name for parameter in own}
    more = [_parameter(*found) for name, found in declared().items() if name not in names]
    together = [*own, *more]
    with_options.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    # typer also reads the annotations, which must name the same parameters.
    with_options.__annotations__ = {each.name: each.annotation for each in together}
    return with_options


def _parameter(option: Option, jobs: Sequence[str]) -> inspect.Parameter:
    """An option as a typer parameter."""
    details = typer.Option(
        option.typed,
        help=option.help,
        metavar=option.metavar,
        min=option.least,
        rich_help_panel=f"Options of {', '.join(jobs) if len(jobs) <= NAMED else 'several jobs'}",
    )
    kind: Any = list[option.kind] if option.several else option.kind  # type: ignore[name-defined]
    default: Any = [] if option.several else False if option.kind is bool else None
    annotation = kind if default is not None else kind | None
    return inspect.Parameter(
        option.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, details],
    )


def given_options(options: Mapping[str, Any], job: str, inputs: Sequence[str]) -> dict[str, Any]:
    """The options that were set; refused if the job or the inputs do not allow them."""
    given = {
        name: value
        for name, value in options.items()
        if value is not None and value is not False and value != []
    }
    known = declared()
    for name in given:
        option, jobs = known[name]
        if job not in jobs:
            raise GlassformerError(
                f"{option.typed} is an option of {', '.join(jobs)}, but the job of this run is "
                f"{job}; leave it out"
            )
        if option.single and (len(inputs) != 1 or inputs[0].startswith("@")):
            raise typer.BadParameter(f"{option.typed} takes exactly one INPUT, not a file")
    return given
