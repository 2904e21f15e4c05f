"""The report of masked prediction. It has no baseline: what counts is the job trained from it."""

import math

import numpy as np

from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score, bootstrap, ratio
from glassformer.metrics.paired import Comparison, randomisation_test
from glassformer.metrics.ratios import share_score
from glassformer.tasks.pretrain.task import GapAnswers, PretrainTask
from glassformer.tasks.reporter import Reporter


class PretrainReporter(Reporter[PretrainTask, GapAnswers]):
    """For masked texts."""

    score_names = ("loss", "perplexity", "accuracy")

    def scores(self, answers: GapAnswers) -> dict[str, Score]:
        loss = bootstrap(ratio, answers.nll, answers.gaps)
        perplexity = Score(*(math.exp(min(x, 100)) for x in (loss.value, loss.low, loss.high)))
        right = share_score(answers.right, answers.gaps)
        return {"loss": loss, "perplexity": perplexity, "accuracy": right}

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
            )
        }
