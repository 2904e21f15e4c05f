"""What makes runs in tests quick."""

from collections.abc import Iterator
from contextlib import contextmanager

import jaxtyping
import pytest
import torch

from glassformer.runs import log
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.translate.reporter import TranslateReporter


@contextmanager
def quickly() -> Iterator[None]:
    """Without baseline, n-grams and TensorBoard, which take seconds to import; they have tests."""
    with pytest.MonkeyPatch.context() as patch:
        for reporter in (ClassifyReporter, TranslateReporter):
            patch.setattr(reporter, "baseline", lambda self, split: None)
        patch.setattr(ClassifyReporter, "complete", lambda self, answers: [])
        patch.setattr(log, "open_board", lambda folder, step: None)
        torch.set_num_threads(1)
        yield


@contextmanager
def unchecked() -> Iterator[None]:
    """Without the hook that checks shapes: training has its own tests."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)
