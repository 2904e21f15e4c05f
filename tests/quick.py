"""What makes runs in tests quick."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch

from glassformer.runs import log
from glassformer.runs.reports import baselines


@contextmanager
def quickly() -> Iterator[None]:
    """Without the baseline and TensorBoard, which take seconds to import and have their tests."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ngram_baseline", "memory_baseline"):
            patch.setattr(baselines, name, lambda job, part, notes: ("", None))
        patch.setattr(log, "open_board", lambda folder, step: None)
        torch.set_num_threads(1)
        yield
