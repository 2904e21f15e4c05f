"""How scores are written: declared once, beside what measures them."""

import importlib.util
import sys

import pytest

from glassformer.metrics.styles import STYLES, ScoreStyle, style_of
from glassformer.metrics.translation import SYMBOL_MEASURES, TEXT_MEASURES
from glassformer.reports.wording import amount, named, written
from glassformer.tasks import JOBS


@pytest.mark.parametrize("name", sorted({*TEXT_MEASURES, *SYMBOL_MEASURES}))
def test_a_style_and_its_measure_agree_on_which_way_is_better(name):
    measure = {**TEXT_MEASURES, **SYMBOL_MEASURES}[name]
    found = measure(["a b", "c d"], [["a b"], ["c e"]])
    assert style_of(name).higher_is_better == found.higher_is_better


@pytest.mark.parametrize("name", JOBS)
def test_how_scores_are_written_does_not_depend_on_what_was_imported(name):
    spec = importlib.util.find_spec("glassformer.metrics.styles")
    anew = importlib.util.module_from_spec(spec)
    sys.modules[spec.name], before = anew, sys.modules[spec.name]  # where dataclasses look
    try:
        spec.loader.exec_module(anew)
    finally:
        sys.modules[spec.name] = before
    for score in JOBS[name].reporter.score_names:
        assert str(anew.style_of(score)) == str(style_of(score))


def test_a_job_can_add_a_score_of_its_own(monkeypatch):
    style = ScoreStyle("bits per byte", most=None, higher_is_better=False)
    monkeypatch.setitem(STYLES, "bpb", style)
    assert named("validation bpb") == "validation bits per byte"
    assert written("bpb", 1.25) == "1.250"
    assert amount("bpb", -0.5) == "0.500"
