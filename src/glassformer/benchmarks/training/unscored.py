"""Preparing runs where the library that scores need is not installed: nothing is scored here."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

from glassformer.benchmarks.peers import installed

LIBRARY, PART = "rapidfuzz", "rapidfuzz.distance"


@contextmanager
def unscored() -> Iterator[None]:
    """Let a stand-in compare texts if the library is missing."""
    if installed(PART) is not None:
        yield
        return
    before = {name: sys.modules[name] for name in (LIBRARY, PART) if name in sys.modules}
    stand_in, part = ModuleType(LIBRARY), ModuleType(PART)
    vars(part)["Levenshtein"] = SimpleNamespace(distance=lambda a, b: int(a != b))
    sys.modules.update({LIBRARY: stand_in, PART: part})
    try:
        yield
    finally:
        for name in (LIBRARY, PART):
            del sys.modules[name]
        sys.modules.update(before)
