"""Code that a setting names, such as `sensors:Frontend`: imported only when a person allows it.

A run folder holds such a name in its config.toml, and never the code. So that no folder can make a
machine run anything, the name is refused unless `allow_code` was called: by `glassformer
--allow-code ...`, or in Python.
"""

import os
import sys
from importlib import import_module
from typing import Any

from glassformer.errors import GlassformerError

_allowed = False


def allow_code(allowed: bool = True) -> None:
    """Allow this process to import code that settings name, if you trust it."""
    global _allowed
    _allowed = allowed


def is_own(name: str) -> bool:
    """Whether a setting names code rather than a part of glassformer.

    >>> is_own("sensors:Frontend"), is_own("tokens")
    (True, False)
    """
    return ":" in name


def refuse_code(name: str) -> None:
    """Refuse to import code unless it was allowed."""
    if not _allowed:
        raise GlassformerError(
            f"model.frontend.kind = {name} is code, which runs only if you allow it; if you trust "
            f"it, type `glassformer --allow-code` before the command, or in Python call "
            f"glassformer.allow_code()"
        )


def load_code(name: str) -> Any:
    """What `module:name` names, in the current folder or installed."""
    refuse_code(name)
    module, _, attribute = name.partition(":")
    sys.path.insert(0, os.getcwd())
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:  # anything can happen in a person's own code
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise GlassformerError(
            f"model.frontend.kind = {name} cannot be imported ({reason}); run from the folder of "
            f"{module}.py, or install it"
        ) from error
    finally:
        sys.path.remove(os.getcwd())
