"""The report of `generate`: bits per byte and perplexity, compared with an n-gram model."""

import math

import numpy as np

from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score, exponential, jackknife, ratio
from glassformer.metrics.paired import Comparison, randomisation_test
from glassformer.tasks.generate.answers import Likelihoods
from glassformer.tasks.generate.ngram_baseline import baseline_seconds, ngram_baseline
from glassformer.tasks.generate.task import GenerateTask
from glassformer.tasks.generate.unknown import unknown_remark
from glassformer.tasks.reporter import Baseline, Reporter

FEW = 10  # of each token in the training texts, on average: fewer are hardly learned


class GenerateReporter(Reporter[GenerateTask, Likelihoods]):
    """For texts."""

    score_names = ("bits_per_byte", "perplexity", "loss")
    compared_unit, validated_unit = "document", "window"

    def remarks(self) -> list[str]:
        assert self.task.samples is not None
        unknown = unknown_remark(self.task.tokenizer, self.task.samples, self.task.tokens)
        return [*self._rare_tokens(), *([] if unknown is None else [unknown])]

    def _rare_tokens(self) -> list[str]:
        """A remark where there are too many tokens for the text."""
        size, places = self.task.tokenizer.size, self.task.stream("train").size
        if not places or size * FEW <= places:
            return []
        smaller = ""
        if self.task.tokenizer.kind in ("bpe", "unigram"):
            smaller = ", lower data.tokenizer.vocabulary, or set data.tokenizer.kind=characters"
        return [
            f"The vocabulary has {size:,} tokens for {places:,} of text, so most are rare; give "
            f"more text{smaller}"
        ]

    def scores(self, answers: Likelihoods) -> dict[str, Score]:
        units = answers.units
        nll, tokens, size = map(units.sums, (answers.nll, answers.tokens, answers.bytes))
        loss = jackknife(ratio, nll, tokens, weights=tokens).score()
        bits = jackknife(ratio, nll / math.log(2), size, weights=size).score()
        found = {"bits_per_byte": bits, "perplexity": exponential(loss), "loss": loss}
        return {
            name: units.judged("mean", score, len(answers.nll)) for name, score in found.items()
        }

    def baseline(self, split: str) -> Baseline[Likelihoods]:
        return ngram_baseline(self.task, split, self.seconds)

    def baseline_seconds(self) -> float:
        return baseline_seconds(self.task)

    def compare(self, first: Likelihoods, second: Likelihoods) -> dict[str, Comparison]:
        """Bits per byte of the same text, whatever its tokens; below zero, the first is better."""
        if not np.array_equal(first.bytes, second.bytes):
            raise GlassformerError(
                "the two runs read different texts, such as one in lower case; compare runs that "
                "read the same"
            )
        bits = [one.nll / math.log(2) for one in (first, second)]
        return {
            "bits_per_byte": randomisation_test(
                ratio,
                (bits[0], first.bytes),
                (bits[1], second.bytes),
                better=bits[1] - bits[0],
                units=first.units,
                weights=first.bytes,
            )
        }
