"""Records from plain values and back: TOML files, and settings typed on a command line.

Values travel as nested dicts until they are complete; then `build` makes records of them and
refuses what does not fit, with the whole name of the setting.
"""

import json
import reprlib
import sys
import tomllib
import types
import warnings
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from glassformer.errors import GlassformerError, unknown

Record = TypeVar("Record")
Values = dict[str, Any]

RENAMED = {("optimiser", "rate"): "lr", ("attention", "groups"): "kv_heads"}
MOST = 2**40  # more of anything is a slip of the finger


def read(kind: type[Record], path: Path) -> Record:
    """A record from a TOML file."""
    return build(kind, read_values(path))


def read_values(path: Path) -> Values:
    """What a TOML file says."""
    try:
        return with_new_names(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise GlassformerError(
            f"{path}: cannot be read ({error.strerror}); check the path"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GlassformerError(f"{path}: not valid TOML ({error}); fix that line") from None


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


def build(kind: type[Record], values: Mapping[str, Any], where: str = "") -> Record:
    """A record from plain values, refusing keys that are not fields and values of a wrong type."""
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    made = {}
    for key, value in values.items():
        if key not in known:
            raise GlassformerError(
                unknown("setting", f"{where}{key}", [where + name for name in known])
            )
        made[key] = fitting(hints[key], value, where + key)
    missing = [where + n for n, field in known.items() if n not in made and _is_needed(field)]
    if len(missing) > 1:
        raise GlassformerError(f"the settings {', '.join(missing)} are missing; add them")
    if missing:
        raise GlassformerError(f"the setting {missing[0]} is missing; add it")
    try:
        return kind(**made)
    except GlassformerError as error:
        home = getattr(kind, "HOME", "")  # where it speaks of itself; it may stand elsewhere
        if not where or not home:
            raise
        raise GlassformerError(str(error).replace(home, where)) from None


def plain(record: Any) -> Values:
    """A record as nested dicts, without the settings that are None: TOML has no word for it.

    So a setting that may be None is None by default.
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


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> Values:
    """The settings below, with those above in their place; tables are merged.

    A name that stands for a table is its `kind`:

    >>> laid_over({"norm": "rms"}, {"norm": {"epsilon": 1e-6}})
    {'norm': {'kind': 'rms', 'epsilon': 1e-06}}
    """
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        if isinstance(old, str) and isinstance(value, Mapping):
            old = {"kind": old}
        merged[key] = (
            laid_over(old, value)
            if isinstance(old, Mapping) and isinstance(value, Mapping)
            else value
        )
    return merged


def parse_setting(text: str) -> Values:
    """One `key=value` of a command line, as nested dicts.

    >>> parse_setting("model.encoder.depth=2")
    {'model': {'encoder': {'depth': 2}}}
    """
    key, equals, value = text.partition("=")
    parts = [part.strip() for part in key.split(".")]
    if not equals or not all(parts):
        raise GlassformerError(
            f"--set {text!r} is not key=value; write for example --set train.clip=0.5"
        )
    nested: Any = _typed(value.strip())
    for part in reversed(parts):
        nested = {part: nested}
    renamed: Values = with_new_names(nested)
    return renamed


def _typed(text: str) -> Any:
    """A value as TOML reads it; a bare word is text."""
    try:
        found = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return found["value"] if len(found) == 1 else text


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "").replace("-", "").isalnum()
    return key if bare else _value(key)


def _value(value: Any) -> str:
    """One value as TOML writes it. JSON's text and numbers are TOML's too."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if value is None or not isinstance(value, str | int | float):
        raise ValueError(f"TOML has no word for {value!r}; leave it out")
    return json.dumps(value, ensure_ascii=False, allow_nan=False).replace("\x7f", "\\u007f")


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def fitting(hint: Any, value: Any, where: str) -> Any:
    """The value as the field wants it: records from tables or names, tuples from lists.

    `none` is the word for None, which TOML lacks, where text is not wanted.
    """
    if hint is Any:
        return value
    wanted = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if type(None) in wanted and (value is None or (value == "none" and str not in wanted)):
        return None
    for kind in wanted:
        if is_dataclass(kind) and isinstance(kind, type) and isinstance(value, dict):
            return build(kind, value, where + ".")
        if isinstance(value, str) and (word := _word(kind)):
            return build(kind, {word: value}, where + ".")
        if get_origin(kind) is tuple and isinstance(value, str):
            value = [value]  # one word for a list of one
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
        if type(value) is kind:
            return _whole(value, where) if kind is str else _countable(value, where)
    names = " or ".join(_called(kind) for kind in wanted if kind is not type(None))
    quotes = "; put it in quotes" if str in wanted and type(value) in (int, float, bool) else ""
    raise GlassformerError(f"{where} must be {names}, got {reprlib.repr(value)}{quotes}")


def _word(kind: Any) -> str | None:
    """The setting that can stand for a whole record: the one that Python takes by its place."""
    if not (is_dataclass(kind) and isinstance(kind, type)):
        return None
    return next((f.name for f in fields(kind) if f.init and not f.kw_only), None)


def _countable(value: Any, where: str) -> Any:
    if type(value) is int and abs(value) >= MOST:
        raise GlassformerError(f"{where} must be below {MOST:,}, got {value}; use a smaller number")
    return value


def _finite(value: int | float, where: str) -> float:
    if not abs(value) <= sys.float_info.max:  # so written, it refuses what is no number, too
        raise GlassformerError(f"{where} must be a number, got {value}; give a finite one")
    return float(value)


def _whole(text: str, where: str) -> str:
    """Refuse what no file can hold: the name of a file that is no Unicode comes in so."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise GlassformerError(
            f"{where}: {text!r} is not valid Unicode; rename the file, or write it otherwise"
        ) from None
    return text


def _called(kind: Any) -> str:
    """What a person calls a type."""
    if get_origin(kind) is tuple:
        return f"a list of {_called(get_args(kind)[0])}"
    return "a table" if get_origin(kind) is dict else kind.__name__
