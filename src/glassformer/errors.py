"""Errors a person can do something about. The command line prints these without a traceback."""

from collections.abc import Iterable
from difflib import get_close_matches


class GlassformerError(Exception):
    """Says what was wrong, what was found, and what to do."""


def unknown(kind: str, name: str, choices: Iterable[str]) -> str:
    """The sentence for a name that is not one of the choices.

    >>> unknown("position", "rotery", ["rotary", "alibi"])
    "unknown position 'rotery'; did you mean 'rotary'? The choices are rotary, alibi"
    """
    listed = list(choices)
    near = get_close_matches(name, listed, n=1)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"unknown {kind} {name!r}; {hint}The choices are {', '.join(listed)}".replace(
        "; The", "; the"
    )
