"""The arguments of the verbs in Python: the options of the command line, under the same names.

Only `--from` is called `from_`, because `from` is a word of Python's own. Data may be paths, or
rows held in memory (see `data.in_memory`).
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from glassformer.config.values import written_settings
from glassformer.data.columns import parse_columns, parse_header
from glassformer.data.in_memory import sources_of
from glassformer.data.rows import InMemory
from glassformer.errors import GlassformerError, unknown
from glassformer.runs.display import Display
from glassformer.runs.own_model import OwnModel, called
from glassformer.runs.request import TrainRequest
from glassformer.tasks import JOBS

P = ParamSpec("P")
Result = TypeVar("Result")
Data = Any  # a path, a list of dicts or tuples, a DataFrame, an Arrow table; or several of them
Settings = str | Sequence[str] | Mapping[str, Any]
NAMES_OF_SPLITS = {"data": "", "valid": "validation", "test": "test", "unlabelled": "unlabelled"}


def training_arguments(
    job: str,
    *data: Data,
    run: str | Path | None = None,
    valid: Data = (),
    test: Data = (),
    unlabelled: Data = (),
    columns: Mapping[str, str] | str | None = None,
    header: bool | str | None = None,
    group: str | None = None,
    size: str | None = None,
    config: str | Path | None = None,
    set: Settings = (),
    steps: int | None = None,
    epochs: int | float | None = None,
    time: str | int | float | None = None,
    flops: int | float | None = None,
    pretrain: bool = True,
    seed: int | None = None,
    from_: str | Path | None = None,
    module: str | None = None,
    device: str | None = None,
    deterministic: bool = False,
    curve: bool = False,
    model: OwnModel | None = None,
    quiet: bool = False,
) -> tuple[TrainRequest, Display]:
    """A request to train, and where its progress is shown.

    Args:
        job: classify, recognise, translate, transcribe, generate, recommend or pretrain.
        data: Files, folders or names of the catalog; lists of dicts or tuples, DataFrames of
            pandas or polars, Arrow tables.
        run: The run folder to create; by default one under runs/.
        valid, test: Validation and test data, given like `data`.
        unlabelled: Data without labels to pretrain on, given like `data`.
        columns: Columns by role, such as {"text": "review", "label": "stars"}.
        header: Whether the first row of a text table names its columns; by default decided by
            its cells.
        group: Rows with the same value in this column stay in one split.
        size: The size of the model: tiny, small, base or large.
        config: A TOML file with settings.
        set: Settings, such as {"train.clip": 0.5}.
        steps, epochs, time, flops: The length of training; `time` in seconds, or as text: "10m";
            `flops` as the floating-point operations of all steps.
        pretrain: Whether to pretrain on the same data if it helps.
        seed: The random seed.
        from_: A run whose weights to start from.
        module: The only module of that run to copy, such as "encoder".
        device: auto, cpu, cuda or mps.
        deterministic: Whether a GPU must give bit-identical results.
        curve: Whether to add a learning curve.
        model: A model of your own: a module, or a function of the task that builds one.
        quiet: Whether to suppress progress output.
    """
    request = train_request(
        job, data,
        run=run, valid=valid, test=test, unlabelled=unlabelled, columns=columns, header=header,
        group=group, size=size, config=config, settings=set, steps=steps, epochs=epochs, time=time,
        flops=flops,
        pretrain=pretrain, seed=seed, origin=from_, module=module, device=device,
        deterministic=deterministic, curve=curve, model=model,
    )  # fmt: skip
    return request, Display(quiet=quiet)


def taking(
    arguments: Callable[P, tuple[TrainRequest, Display]],
) -> Callable[[Callable[[TrainRequest, Display], Result]], Callable[P, Result]]:
    """Give a verb these arguments, for editors and people too, instead of the request they make."""

    def given_to(verb: Callable[[TrainRequest, Display], Result]) -> Callable[P, Result]:
        @wraps(verb)
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            return verb(*arguments(*args, **kwargs))

        signature = inspect.signature(arguments)
        found = inspect.signature(verb).return_annotation
        call.__signature__ = signature.replace(return_annotation=found)  # type: ignore[attr-defined]
        call.__annotations__ = arguments.__annotations__ | {"return": found}
        explained = str(inspect.getdoc(arguments)).partition("\n\n")[2]
        call.__doc__ = f"{inspect.getdoc(verb)}\n\n{explained}"
        return in_words(call)

    return given_to


def in_words(verb: Callable[P, Result]) -> Callable[P, Result]:
    """Refuse arguments that a verb does not have, naming the closest one, or that it lacks."""
    signature = inspect.signature(verb)
    names = [
        name
        for name, parameter in signature.parameters.items()
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]

    @wraps(verb)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        for name in kwargs:
            if name not in names:
                raise GlassformerError(unknown(f"argument of {verb.__name__}", name, names))
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise GlassformerError(
                f"{verb.__name__}: {error}; help({verb.__name__}) shows its arguments"
            ) from None
        return verb(*args, **kwargs)

    return call


def train_request(job: str, data: Iterable[Data], **options: Any) -> TrainRequest:
    """A request from arguments: a single path or a string is accepted for several."""
    if not isinstance(job, str):
        raise GlassformerError(
            f"the job comes first, got {type(job).__name__}; give one of {', '.join(JOBS)}"
        )
    for name in ("run", "config", "origin"):
        if options.get(name) is not None:
            options[name] = path_of(options[name], name)
    given = {"data": data} | {
        name: () if is_nothing(some := options.get(name)) else (some,)
        for name in ("valid", "test", "unlabelled")
    }
    for name, some in given.items():
        options[name] = sources_of(some, NAMES_OF_SPLITS[name])
    options["settings"] = written_settings(options.get("settings", ()))
    options["columns"] = named_columns(options.get("columns"))
    options["header"] = parse_header(options.get("header"))
    return TrainRequest(job=job, **options)


def command_of(request: TrainRequest) -> str:
    """The command that makes a request, or the call in Python, if it can only be made there."""
    held = any(isinstance(name, InMemory) for name in request.data)
    if request.model is None and not held:
        return request.command()
    names = {"settings": "set", "origin": "from_"}
    usual = TrainRequest(job=request.job, data=request.data)
    given = {
        names.get(one.name, one.name): getattr(request, one.name)
        for one in fields(request)
        if getattr(request, one.name) != getattr(usual, one.name)
    }
    words = [repr(request.job), *map(_shown, request.data)]
    words += [f"{name}={_shown(value)}" for name, value in given.items()]
    return f"glassformer.train({', '.join(words)})"


def _shown(value: object) -> str:
    """A value in the text of a call, or a name for what text cannot express."""
    if isinstance(value, InMemory):
        return f"<{value}>"
    if isinstance(value, Path):
        return repr(str(value))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value) if isinstance(value, str | int | float | Mapping) else called(value)


def is_nothing(given: object) -> bool:
    """Whether no data were given."""
    return given is None or (isinstance(given, list | tuple) and not given)


def path_of(value: object, what: str) -> Path:
    """A path given from Python; other types are refused."""
    if isinstance(value, str | PathLike):
        return Path(value)
    raise GlassformerError(f"{what} must be a path, got {value!r}; give a str or a Path")


def named_columns(columns: object) -> Mapping[str, str]:
    """Columns by role, from a dictionary or from text as on the command line."""
    if not columns:
        return {}
    if isinstance(columns, str):
        return parse_columns(columns)
    if isinstance(columns, Mapping):
        return columns
    raise GlassformerError(
        f"columns must map roles to columns, got {columns!r}; write a dictionary such as "
        f"{{'text': 'review'}}"
    )
