"""The report of masked prediction. It has no baseline: what counts is the job trained from it."""

import numpy as np

from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score, exponential, jackknife, ratio
from glassformer.metrics.paired import Comparison, randomisation_test
from glassformer.metrics.ratios import share_score
from glassformer.tasks.pretrain.task import GapAnswers, PretrainTask
from glassformer.tasks.reporter import Reporter


class PretrainReporter(Reporter[PretrainTask, GapAnswers]):
    """For masked texts."""

    score_names = ("loss", "perplexity", "accuracy")

    def scores(self, answers: GapAnswers) -> dict[str, Score]:
        units, pieces = answers.units, len(answers.nll)
        nll, gaps = units.sums(answers.nll), units.sums(answers.gaps)
        loss = jackknife(ratio, nll, gaps, weights=gaps).score()
        right = share_score(answers.right, answers.gaps, units=units)
        return {
            "loss": units.judged("mean", loss, pieces),
            "perplexity": units.judged("mean", exponential(loss), pieces),
            "accuracy": units.judged("share", right, pieces),
        }

    def compare(self, first: GapAnswers, second: GapAnswers) -> dict[str, Comparison]:
        """Losses on the same masked tokens; below zero, the first is better."""
        if not np.array_equal(first.gaps, second.gaps):
            raise GlassformerError(
                "the two runs mask different tokens, since their tokenizers or task.max_length "
                "differ; compare runs that share both"
            )
        return {
            "loss": randomisation_test(
                ratio,
                (first.nll, first.gaps),
                (second.nll, second.gaps),
                better=second.nll - first.nll,
                units=first.units,
                weights=first.gaps,
            )
        }
