"""From what a person passes in Python to what the command line would have asked for."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from glassformer.data.columns import parse_columns
from glassformer.runs.asked import Asked


def ask(job: str, data: Iterable[str | Path], **asked: Any) -> Asked:
    """The same fields, each in its own type: one path for several, a string for a path."""
    for name in ("run", "config", "origin"):
        if asked.get(name) is not None:
            asked[name] = Path(asked[name])
    for name in ("valid", "test", "settings"):
        given = asked.get(name, ())
        asked[name] = (str(given),) if isinstance(given, str | Path) else tuple(map(str, given))
    if isinstance(asked.get("columns"), str):
        asked["columns"] = parse_columns(asked["columns"])
    return Asked(job=job, data=tuple(map(str, data)), **asked)
