"""Records from plain values and back: TOML files, and settings typed on a command line.

Values are nested dicts until they are complete; then `build` turns them into records and refuses
what does not fit, with the full name of the setting.
"""

import json
import re
import reprlib
import sys
import tomllib
import types
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from glassformer.errors import GlassformerError, unknown

Record = TypeVar("Record")
Values = dict[str, Any]

RENAMED = {("optimiser", "rate"): "lr", ("attention", "groups"): "kv_heads"}
BARE_POINT = r"(?<![^+-])\.(?=\d)"  # at the start, where TOML wants a digit before it
MOST = 2**40  # anything larger must be a typo
LONGEST_FILE = 1 << 24  # characters
MOST_PARTS = 1000  # of a key


def read(kind: type[Record], path: Path) -> Record:
    """A record from a TOML file."""
    return build(kind, read_values(path))


def read_values(path: Path) -> Values:
    """The contents of a TOML file."""
    try:
        return with_new_names(tomllib.loads(_text_of(path)))
    except OSError as error:
        raise GlassformerError(
            f"{path}: cannot be read ({error.strerror}); check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GlassformerError(f"{path}: not valid TOML ({error}); fix that line") from None
    except RecursionError:
        raise GlassformerError(
            f"{path}: too large or nested too deeply for settings; write it anew, or copy it again"
        ) from None


def _text_of(path: Path) -> str:
    """The text of a file of settings; RecursionError for one that would take long to parse."""
    with path.open(encoding="utf-8") as file:
        text = file.read(LONGEST_FILE + 1)
    parts = max((line.partition("=")[0].count(".") for line in text.splitlines()), default=0)
    if len(text) > LONGEST_FILE or parts > MOST_PARTS:
        raise RecursionError
    return text


def with_new_names(values: Any, table: str = "") -> Any:
    """Values as recipes and runs of earlier versions hold them, under the names of this one.

    >>> with_new_names({"train": {"optimiser": {"lr": 0.1}}})
    {'train': {'optimiser': {'lr': 0.1}}}
    """
    if isinstance(values, list):
        return [with_new_names(value, table) for value in values]
    if not isinstance(values, dict):
        return values
    found = {}
    for key, value in values.items():
        new = RENAMED.get((table, key), key)
        if new != key:
            message = f"{table}.{key} is called {table}.{new}; the old name will go"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
        found[new] = with_new_names(value, key)
    return found


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """The types of a record's settings by name, which take long to evaluate."""
    return get_type_hints(kind)


def build(kind: type[Record], values: Mapping[str, Any], where: str = "") -> Record:
    """A record from plain values; unknown keys and values of a wrong type are refused."""
    hints = hints_of(kind)  # type: ignore[arg-type]
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    checked = {}
    for key, value in values.items():
        if key not in known:
            names = [where + name for name in known]
            raise GlassformerError(
                unknown("setting", f"{where}{key}", names, listed_in="docs/reference/settings.md")
            )
        checked[key] = fitting(hints[key], value, where + key)
    needed = [n for n, f in known.items() if f.default is f.default_factory is MISSING]
    missing = [where + name for name in needed if name not in checked]
    if len(missing) > 1:
        raise GlassformerError(f"the settings {', '.join(missing)} are missing; add them")
    if missing:
        raise GlassformerError(f"the setting {missing[0]} is missing; add it")
    try:
        return kind(**checked)
    except GlassformerError as error:
        home = getattr(kind, "HOME", "")  # the prefix in its messages; it may be nested elsewhere
        if not where or not home:
            raise
        raise GlassformerError(str(error).replace(home, where)) from None


def plain(record: Any) -> Values:
    """A record as nested dicts, without settings that are None, which TOML cannot express.

    So a setting that may be None must default to None.
    """
    values = ((f.name, getattr(record, f.name)) for f in fields(record))
    return {
        name: plain(value) if is_dataclass(value) else value
        for name, value in values
        if value is not None
    }


def to_toml(values: Mapping[str, Any], table: str = "") -> str:
    """Nested dicts as TOML: single values first, then each table under its own heading.

    >>> print(to_toml({"seed": 1, "train": {"rate": 0.1, "freeze": ["encoder"]}}))
    seed = 1
    <BLANKLINE>
    [train]
    rate = 0.1
    freeze = ["encoder"]
    <BLANKLINE>
    """
    tables = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    lines = [f"{_key(key)} = {_value(v)}" for key, v in values.items() if key not in tables]
    headed = [f"[{table}]"] if table and (lines or not tables) else []
    parts = ["\n".join([*headed, *lines]) + "\n"] if headed or lines else []
    for key, value in tables.items():
        parts.append(to_toml(value, f"{table}.{_key(key)}" if table else _key(key)))
    return "\n".join(parts)


def merge_values(below: Mapping[str, Any], above: Mapping[str, Any]) -> Values:
    """Merge two layers of settings; `above` wins, tables are merged recursively.

    A name that stands for a table is its `kind`:

    >>> merge_values({"norm": "rms"}, {"norm": {"epsilon": 1e-6}})
    {'norm': {'kind': 'rms', 'epsilon': 1e-06}}
    """
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, str) and isinstance(value, Mapping):
            old = {"kind": old}
        merged[key] = (
            merge_values(old, value)
            if isinstance(old, Mapping) and isinstance(value, Mapping)
            else value
        )
    return merged


def parse_setting(text: str) -> Values:
    """One `key=value` from the command line, as nested dicts.

    >>> parse_setting("model.encoder.depth=2")
    {'model': {'encoder': {'depth': 2}}}
    """
    key, equals, value = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise GlassformerError(
            f"--set {text!r} is not key=value; write, for example, --set train.clip=0.5"
        )
    nested: Any = _typed(value.strip())
    for part in reversed(parts):
        nested = {part: nested}
    renamed: Values = with_new_names(nested)
    return renamed


def written_settings(given: object) -> tuple[str, ...]:
    """Settings given in Python as texts key=value: a dict of them, a single text, or several.

    >>> written_settings({"train.clip": 0.5, "task.separator": "|"})
    ('train.clip=0.5', 'task.separator="|"')
    """
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Mapping):
        return tuple(f"{key}={_written(value)}" for key, value in given.items())
    if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
        return tuple(given)
    raise GlassformerError(
        f"--set takes settings, got {given!r}; write a dictionary such as {{'train.clip': 0.5}}"
    )


def _written(value: Any) -> str:
    """A value as it is typed."""
    return "none" if value is None else _value(str(value) if isinstance(value, Path) else value)


def _typed(text: str) -> Any:
    """A value in TOML syntax; a bare word is text, and .5 a number, but no list is left open."""
    try:
        found = tomllib.loads(f"value = {re.sub(BARE_POINT, '0.', text)}")
    except (tomllib.TOMLDecodeError, RecursionError):
        if text.startswith(("[", "{")):
            raise GlassformerError(
                f"--set: {text} is no value; close its brackets and quotes, or write it in quotes "
                f"if it is a text"
            ) from None
        return text
    return found["value"] if len(found) == 1 else text


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _value(key)


def _value(value: Any) -> str:
    """A value in TOML syntax, which shares JSON's strings and numbers."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if value is None or not isinstance(value, str | int | float):
        raise ValueError(f"TOML cannot express {value!r}; leave it out")
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def fitting(hint: Any, value: Any, where: str) -> Any:
    """The value in the type of its field: records from tables or names, tuples from lists.

    `none` stands for None, which TOML lacks, unless the field is text.
    """
    if hint is Any:
        return value
    allowed = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if type(None) in allowed and (value is None or (value == "none" and str not in allowed)):
        return None
    for kind in allowed:
        if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
            return build(kind, value, where + ".")
        if isinstance(value, str) and (word := _word(kind)):
            return build(kind, {word: value}, where + ".")
        if get_origin(kind) is tuple and isinstance(value, str):
            value = [value]  # a single value for a list of one
        if get_origin(kind) is tuple and isinstance(value, list | tuple):
            return tuple(fitting(get_args(kind)[0], item, where) for item in value)
        if get_origin(kind) is dict and isinstance(value, dict):
            inside = get_args(kind)[1]
            return {
                fitting(str, key, where): fitting(inside, item, f"{where}.{key}")
                for key, item in value.items()
            }
        if kind is float and type(value) in (int, float):
            return _finite(value, where)
        if type(value) is kind or (kind is str and isinstance(value, str)):
            return _valid_text(value, where) if kind is str else _countable(value, where)
    names = " or ".join(_called(kind) for kind in allowed if kind is not type(None))
    any_text = str in allowed and bool not in allowed  # otherwise the text is one of a few words
    quotes = "; put it in quotes" if any_text and type(value) in (int, float, bool) else ""
    raise GlassformerError(f"{where} must be {names}, got {reprlib.repr(value)}{quotes}")


def _word(kind: Any) -> str | None:
    """The setting that can stand for the record: its positional argument."""
    if not (is_dataclass(kind) and isinstance(kind, type)):
        return None
    return next((f.name for f in fields(kind) if f.init and not f.kw_only), None)


def _countable(value: Any, where: str) -> Any:
    if type(value) is int and abs(value) >= MOST:
        raise GlassformerError(f"{where} must be below {MOST:,}, got {value}; use a smaller number")
    return value


def _finite(value: int | float, where: str) -> float:
    if not abs(value) <= sys.float_info.max:  # written this way, it also refuses NaN
        raise GlassformerError(f"{where} must be a number, got {value}; give a finite one")
    return float(value)


def _valid_text(text: str, where: str) -> str:
    """Refuse invalid Unicode, such as a file name that is not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise GlassformerError(
            f"{where}: {text!r} is not valid Unicode; rename the file, or write it differently"
        ) from None
    return text


def _called(kind: Any) -> str:
    """The name of a type, for messages; of a record, the first of its settings."""
    if get_origin(kind) is tuple:
        return f"a list of {_called(get_args(kind)[0])}"
    if is_dataclass(kind):
        names = [one.name for one in fields(kind)]
        return f"a table ({', '.join([*names[:2], '...'] if names[2:] else names)})"
    return "a table" if get_origin(kind) is dict else kind.__name__
