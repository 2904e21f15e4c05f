"""A comparison as requested, and the folder that it is made in."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from glassformer.config import choose, require
from glassformer.config.run import Config
from glassformer.errors import GlassformerError
from glassformer.files import read_json
from glassformer.runs.arguments import Data
from glassformer.runs.display import clock
from glassformer.runs.new_folder import HOME, free_name, refuse_existing
from glassformer.runs.request import TrainRequest
from glassformer.runs.variants import Choices, Variant, choices_of, variants_of

PLAN = "compare.json"
SPLITS = {"valid": "validation", "test": "test"}


@dataclass(frozen=True, kw_only=True, slots=True)
class CompareRequest:
    """A comparison as requested.

    Attributes:
        base: What all variants share: the job, the data, the budget, other settings.
        choices: The values of each setting that varies.
        seeds: How many seeds, from 0.
        on: The split that is scored.
        longer: More rows to score, such as longer ones than in training.
        at_once: Runs trained at the same time; None for as many as the machine allows.
    """

    base: TrainRequest
    choices: Choices
    seeds: int = 3
    one_at_a_time: bool = False
    on: str = "valid"
    longer: tuple[Data, ...] = ()
    at_once: int | None = None

    def __post_init__(self) -> None:
        for name, count in (("seeds", self.seeds), ("at-once", self.at_once)):
            whole = count is None or (type(count) is int and count >= 1)
            require(whole, f"--{name} must be a whole number of 1 or more, got {count!r}")
        choose("split in --on", self.on, tuple(SPLITS))

    @property
    def variants(self) -> list[Variant]:
        """Every variant, in the order given."""
        return variants_of(self.choices, one_at_a_time=self.one_at_a_time)

    def plan(self) -> dict[str, Any]:
        """What makes it the same comparison, as plain values."""
        usual = TrainRequest(job=self.base.job, data=())
        given = {
            one.name: _plain(getattr(self.base, one.name))
            for one in fields(self.base)
            if one.name != "run" and getattr(self.base, one.name) != getattr(usual, one.name)
        }
        return {
            "job": self.base.job,
            **given,
            "vary": {key: list(values) for key, values in self.choices.items()},
            "one_at_a_time": self.one_at_a_time,
            "seeds": self.seeds,
        }

    def command(self) -> str:
        """The equivalent command line."""
        train = self.base.command().removeprefix("glassformer train ")
        words = [
            w for key, some in self.choices.items() for w in ("--vary", f"{key}={_list(some)}")
        ]
        words += ["--seeds", str(self.seeds)]
        words += ["--on", self.on] if self.on != "valid" else []
        words += [word for name in self.longer for word in ("--longer", str(name))]
        words += ["--one-at-a-time"] if self.one_at_a_time else []
        return f"glassformer compare {train} {shlex.join(words)}"


def _list(values: Sequence[str]) -> str:
    return ",".join(values)


def _plain(value: object) -> Any:
    """A value of a request for JSON; rows held in memory by their name."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, bool | int | float) else str(value)


def comparison_request(
    base: TrainRequest,
    vary: object,
    *,
    seeds: int = 3,
    one_at_a_time: bool = False,
    on: str = "valid",
    longer: Sequence[Data] = (),
    at_once: int | None = None,
) -> CompareRequest:
    """A comparison as it is given on the command line and in Python."""
    return CompareRequest(
        base=base,
        choices=choices_of(vary),
        seeds=seeds,
        one_at_a_time=one_at_a_time,
        on=on,
        longer=(longer,) if isinstance(longer, str | Path) else tuple(longer),
        at_once=at_once,
    )


def budget_of(config: Config) -> str:
    """The budget of a run in words; refused if there is none, as variants could not be compared."""
    train = config.train
    if train.time is not None:
        return clock(train.time)
    if train.flops is not None:
        return f"{train.flops:.3g} FLOPs"
    require(
        train.steps is not None or train.epochs is not None,
        "a comparison needs a budget, the same for every variant; add --time, --steps, --epochs or "
        "--flops",
    )
    return f"{train.steps:,} steps" if train.steps is not None else f"{train.epochs:g} epochs"


def folder_of(request: CompareRequest) -> Path:
    """The folder of a comparison: the one given, one begun with the same command, or a new one."""
    plan, given = request.plan(), request.base.run
    if given is not None:
        found = plan_in(given)
        if found is None:
            refuse_existing(given)
        elif found != plan:
            raise GlassformerError(
                f"{given}: was made with other settings ({', '.join(differing(found, plan))}); "
                f"give the same ones, or name another folder with --run"
            )
        return given
    stem = re.sub(r"-\d+$", "", free_name(request.base.name).name) + "-compare"
    names = [stem, *(f"{stem}-{number}" for number in range(2, 10_000))]
    return next(
        HOME / name for name in names if not (HOME / name).exists() or plan_in(HOME / name) == plan
    )


def plan_in(folder: Path) -> dict[str, Any] | None:
    """What the comparison in a folder compares; None if there is none."""
    path = folder / PLAN
    if not path.exists():
        return None
    try:
        found = read_json(path)
    except (OSError, ValueError) as error:
        raise GlassformerError(
            f"{path}: damaged ({error}); name another folder with --run"
        ) from None
    return found if isinstance(found, dict) else {}


def differing(found: Mapping[str, Any], plan: Mapping[str, Any]) -> list[str]:
    """The names of what differs between two plans.

    >>> differing({"job": "classify", "seeds": 3}, {"job": "classify", "seeds": 5, "size": "tiny"})
    ['seeds', 'size']
    """
    return [name for name in {**found, **plan} if found.get(name) != plan.get(name)]
