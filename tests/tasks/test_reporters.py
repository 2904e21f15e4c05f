"""Every job has a reporter; what it does not say itself has a default that says nothing."""

import numpy as np
import pytest

from glassformer.metrics.styles import STYLES
from glassformer.reports import Sections
from glassformer.tasks import JOBS
from glassformer.tasks.classify.reporter import ClassifyReporter
from glassformer.tasks.reporter import Baseline, Reporter
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.translate.answers import Translations
from glassformer.tasks.translate.reporter import TranslateReporter


class ScoresAlone(Reporter):
    """The least that a job must say."""

    score_names = ("exact",)

    def answers(self, model, batches):
        return []

    def scores(self, answers):
        return {}

    def compare(self, first, second):
        return {}


def test_a_reporter_of_scores_alone_is_enough():
    reporter = ScoresAlone(None)
    assert reporter.sections([], []) == Sections()
    assert reporter.baseline("test") is None
    assert (reporter.baseline_seconds(), reporter.timed_baseline_seconds()) == (0.0, 0.0)
    assert (reporter.vocabulary, reporter.remarks(), reporter.notes([])) == ((), [], [])
    assert reporter.baseline_tables([], [], []) == []


@pytest.mark.parametrize("name", JOBS)
def test_every_score_of_a_job_is_written_in_a_way_of_its_own(name):
    assert {*JOBS[name].reporter.score_names} <= {*STYLES, "accuracy"}


def test_a_baseline_is_called_by_what_it_is_and_what_was_chosen():
    assert Baseline("n-grams", "word 1-2-grams", None).name == "n-grams (word 1-2-grams)"


def test_answers_of_several_classifiers_are_pooled_each_at_its_own_temperature():
    first = ClassAnswers(np.ones((2, 3), np.float32), np.array([0, 1]), temperature=2.0)
    second = ClassAnswers(np.ones((1, 3), np.float32), np.array([2]))
    pooled = ClassifyReporter(None).pool([first, second])
    assert pooled.labels.tolist() == [0, 1, 2]
    assert pooled.probabilities() == pytest.approx(
        np.concatenate([first.probabilities(), second.probabilities()])
    )
    assert pooled.logits[:, 0].tolist() == [0.5, 0.5, 1.0]


def test_answers_of_several_translators_are_pooled_in_order():
    first = Translations(["a", "b"], [["a"], ["x"]], "letters", np.array([1.0, 2]), np.ones(2))
    second = Translations(["c"], [["c"]], "letters", np.array([3.0]), np.array([5.0]))
    pooled = TranslateReporter(None).pool([first, second])
    assert (pooled.hypotheses, pooled.references) == (["a", "b", "c"], [["a"], ["x"], ["c"]])
    assert pooled.values()["exact"] == pytest.approx(2 / 3)
    assert pooled.values()["loss"] == pytest.approx(6 / 7)
    unknown = TranslateReporter(None).pool([first, Translations(["c"], [["c"]], "letters")])
    assert "loss" not in unknown.scores()
