"""Errors a person can do something about. The command line prints these without a traceback."""

import errno
from collections.abc import Iterable
from difflib import get_close_matches

NO_MEMORY = (  # as PyTorch, its libraries and the system say it
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "could not create a primitive",
    "std::bad_alloc",
    "can't start new thread",
    "failed to map segment",
    "Cannot allocate memory",
)


class GlassformerError(Exception):
    """Says what was wrong, what was found, and what to do."""


class NonFiniteScoresError(GlassformerError):
    """A model's scores are NaN or infinite."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the device, or the machine, could not hold something.

    >>> is_out_of_memory(MemoryError()), is_out_of_memory(RuntimeError("no such shape"))
    (True, False)
    """
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    message = str(error)
    return isinstance(error, RuntimeError | ImportError) and any(w in message for w in NO_MEMORY)


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


def install(extra: str) -> str:
    """How to get the libraries of an extra, from a package and from a clone.

    >>> install("audio")
    "pip install 'glassformer[audio]' (in a clone: pip install -e '.[audio]')"
    """
    return f"pip install 'glassformer[{extra}]' (in a clone: pip install -e '.[{extra}]')"
