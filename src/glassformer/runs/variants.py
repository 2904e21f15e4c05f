"""The variants of a comparison: one setting changed, or several, in a grid or one at a time."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from glassformer.config.run import Config
from glassformer.config.values import Values, read_values, written_settings
from glassformer.errors import GlassformerError
from glassformer.runs.request import FACTS, HOW_LONG, TrainRequest, merge_layers
from glassformer.tasks import JOBS

Choices = Mapping[str, Sequence[str]]  # the values of each setting, as written
FIXED = {  # settings that are the same for all variants, and what to use instead
    "seed": "every variant is trained with the same seeds; use --seeds",
    **{f"train.{name}": f"every variant has the same budget; use --{name}" for name in HOW_LONG},
    **{f"data.{name}": "every variant reads the same rows" for name in ("files", "valid", "test")},
}
BALANCED = r"""(?:[^"'\[\]]|"[^"]*"|'[^']*'|\[[^\]]*\])"""  # brackets and quotes that are closed


@dataclass(frozen=True, slots=True)
class Variant:
    """One choice for every setting that varies: setting and value, as written."""

    values: tuple[tuple[str, str], ...]

    @property
    def settings(self) -> tuple[str, ...]:
        """As given with --set."""
        return tuple(f"{key}={value}" for key, value in self.values)

    @property
    def name(self) -> str:
        """Its name in tables: the value, or with several settings the last word of each, too.

        >>> Variant((("model.norm", "rms"),)).name
        'rms'
        >>> Variant((("model.norm", "rms"), ("train.clip", "0"))).name
        'norm=rms, clip=0'
        """
        if len(self.values) == 1:
            return self.values[0][1]
        keys = [key for key, _ in self.values]
        return ", ".join(f"{short_name(key, keys)}={value}" for key, value in self.values)

    def __str__(self) -> str:
        return ", ".join(self.settings)

    def request(self, base: TrainRequest) -> TrainRequest:
        """The request to train it."""
        return replace(base, settings=(*base.settings, *self.settings))


def short_name(key: str, keys: Sequence[str]) -> str:
    """The last words of a setting's name, as many as tell it from the others.

    >>> keys = ["model.encoder.norm", "model.decoder.norm", "train.clip"]
    >>> [short_name(key, keys) for key in keys]
    ['encoder.norm', 'decoder.norm', 'clip']
    """
    words = key.split(".")
    for count in range(1, len(words)):
        name = ".".join(words[-count:])
        if sum(f".{other}".endswith(f".{name}") for other in keys) == 1:
            return name
    return key


def choices_of(vary: object) -> Choices:
    """The values of each setting, from texts key=value,value or a dictionary of lists.

    >>> choices_of(["model.norm=layer,rms", "model.encoder.attention.window=[2,4],0"])
    {'model.norm': ['layer', 'rms'], 'model.encoder.attention.window': ['[2,4]', '0']}
    """
    found: dict[str, Sequence[str]] = {}
    for key, values in split_choices(vary):
        if key in found:
            raise GlassformerError(f"--vary {key} is given twice; list all values in one")
        if key in FIXED:
            raise GlassformerError(f"--vary {key}: {FIXED[key]}")
        if key in FACTS:
            raise GlassformerError(f"--vary {key}: {key} is not a setting; leave it out")
        if not values or "" in values:
            raise GlassformerError(f"--vary {key}= lacks a value; write --vary {key}=A,B")
        for value in values:
            if values.count(value) > 1:
                raise GlassformerError(f"--vary {key} lists {value} twice; list each value once")
        if len(values) < 2:
            raise GlassformerError(
                f"--vary {key}={values[0]} is a single value; add another to compare it with, or "
                f"use --set"
            )
        found[key] = values
    if not found:
        raise GlassformerError(
            "nothing to compare; add --vary KEY=A,B, such as --vary model.position=rotary,alibi"
        )
    return found


def split_choices(vary: object) -> list[tuple[str, list[str]]]:
    """The keys, each with its values, as written."""
    if isinstance(vary, Mapping):
        wrong = next(
            (key for key, some in vary.items() if not isinstance(some, list | tuple)), None
        )
        if wrong is not None:
            raise GlassformerError(
                f"--vary {wrong}: its values must be a list, got {vary[wrong]!r}; write "
                f"{{{wrong!r}: [...]}}"
            )
        return [
            (key, [one if isinstance(one, str) else as_written(one) for one in some])
            for key, some in vary.items()
        ]
    given = [vary] if isinstance(vary, str) else vary
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise GlassformerError(
            f"--vary takes settings and their values, got {vary!r}; write a dictionary such as "
            f"{{'model.position': ['rotary', 'alibi']}}"
        )
    found = []
    for text in given:
        key, equals, values = text.partition("=")
        if not equals or not key.strip():
            raise GlassformerError(
                f"--vary {text!r} is not KEY=A,B; write, for example, --vary "
                f"model.position=rotary,alibi"
            )
        found.append((key.strip(), split_values(values)))
    return found


def as_written(value: object) -> str:
    """A value of Python as it is typed."""
    return written_settings({"value": value})[0].removeprefix("value=")


def split_values(text: str) -> list[str]:
    """Values between commas; commas in brackets and quotes belong to a value.

    >>> split_values("[2, 4], 0,'a,b'")
    ['[2, 4]', '0', "'a,b'"]
    """
    return [part.strip() for part in re.split(rf",(?={BALANCED}*$)", text)]


def variants_of(choices: Choices, *, one_at_a_time: bool) -> list[Variant]:
    """All combinations, or the first values and each other value in place of its first."""
    if one_at_a_time:
        first = {key: values[0] for key, values in choices.items()}
        combined = [first] + [
            first | {key: value} for key, values in choices.items() for value in values[1:]
        ]
        return [Variant(tuple(one.items())) for one in combined]
    every = product(*choices.values())
    return [Variant(tuple(zip(choices, values, strict=True))) for values in every]


def base_request(request: TrainRequest) -> TrainRequest:
    """What all variants share: the whole budget, no pretraining, no refit, no baseline.

    Without a refit, n-grams do not learn the validation rows either, which may be scored. Settings
    of the user go first.
    """
    for setting in request.settings:
        key = setting.partition("=")[0].strip()
        if key in FIXED:
            raise GlassformerError(f"--set {setting}: {FIXED[key]}")
    usual: Values = {"baseline": False, "train": {"patience": "none", "refit": False}}
    if JOBS[request.job].first_stage is not None and not request.unlabelled:
        usual["pretrain"] = "no"
    file = {} if request.config is None else read_values(request.config)
    given = {key: value for key, value in file.items() if key in usual}
    return replace(request, values=merge_layers(usual, given, request.values))


def resolve_all(variants: Sequence[Variant], base: TrainRequest, on: str) -> list[Config]:
    """The configuration of every variant; one that is refused, or repeats another, is named.

    Args:
        on: The split that is scored, which no variant may learn.
    """
    found: dict[str, tuple[Variant, Config]] = {}
    for variant in variants:
        try:
            config = variant.request(base).resolve()
        except GlassformerError as error:
            raise GlassformerError(f"{variant}: {error}") from None
        if on == "valid" and config.train.refit is not False:
            raise GlassformerError(
                f"{variant}: models that learn the validation rows (train.refit) cannot be "
                f"compared on them; use --on test, or --set train.refit=false"
            )
        text = config.to_toml()
        if text in found:
            raise GlassformerError(
                f"{variant} and {found[text][0]} are the same settings; leave one out"
            )
        found[text] = variant, config
    return [config for _, config in found.values()]
