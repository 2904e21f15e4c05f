"""JSON Lines: every line is an object, its keys are the columns."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from glassformer.data.rows import Row, row_of
from glassformer.data.sources.decoding import lines
from glassformer.errors import GlassformerError

LONGEST_NUMBER = 4000  # digits; Python refuses to convert more


def read_json_lines(path: Path, encoding: str | None) -> Iterator[Row]:
    """One row per line; blank lines are skipped."""
    number = 0
    for line_number, line in enumerate(lines(path, encoding), start=1):
        if not line.strip():
            continue
        number += 1
        where = f"{path} row {number} (line {line_number})"
        try:
            values = json.loads(line, parse_int=_integer)
            if not isinstance(values, dict):
                raise GlassformerError(
                    f"{where}: {_name(values)} instead of an object; "
                    f'write every line like {{"text": "...", "label": "..."}}'
                )
            row = row_of(values, str(path), number)
        except json.JSONDecodeError as error:
            raise GlassformerError(
                f"{where}: not JSON ({error.msg} at character {error.pos + 1}); "
                f"write one complete JSON object per line"
            ) from None
        except RecursionError:
            raise GlassformerError(f"{where}: JSON nested too deeply; use plain values") from None
        yield row


def _integer(digits: str) -> int | str:
    return int(digits) if len(digits) < LONGEST_NUMBER else digits


def _name(value: Any) -> str:
    """What a JSON value is, in words."""
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
