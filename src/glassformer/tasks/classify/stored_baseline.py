"""The baseline as a run keeps it: n-grams and their weights, used without scikit-learn.

`baseline.safetensors` holds the buckets that n-grams are hashed to, a row of weights for each, and
the biases; `baseline.json` says how texts become n-grams and weights become probabilities.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from glassformer.config.values import fitting
from glassformer.errors import GlassformerError
from glassformer.files import read_json, replacing, write_json
from glassformer.metrics.calibration import to_probabilities
from glassformer.tasks.classify.ngram_baseline import NgramBaseline, logits_of
from glassformer.tasks.shared.ngram_hashing import buckets_of, ngrams_of
from glassformer.tasks.shared.ngrams import Analyser

TENSORS, RECORD = "baseline.safetensors", "baseline.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineRecord:
    """How a stored baseline reads texts and answers.

    Attributes:
        unit: What its n-grams are made of: word or character.
        longest: How many of them an n-gram has at most.
        chosen: Its settings, in a few words.
    """

    unit: str
    longest: int
    temperature: float
    classes: int
    multi_label: bool
    chosen: str


class WeightedNgram(NamedTuple):
    """An n-gram of a text and what it adds to the score of each label."""

    ngram: str
    weights: Float[np.ndarray, " C"]


@dataclass(frozen=True, eq=False, slots=True)
class StoredBaseline:
    """A fitted baseline: `probabilities` are those of the NgramBaseline it was made from.

    Attributes:
        buckets: The n-grams it knows, by their hashes, in ascending order.
        weights: What they weigh for each label; for two labels that exclude each other, for the
            second.
        idf: What counts are multiplied by, besides; all 1 where that did not help.
    """

    record: BaselineRecord
    buckets: Int[np.ndarray, " F"]
    weights: Float[np.ndarray, "F K"]
    bias: Float[np.ndarray, " K"]
    idf: Float[np.ndarray, " F"]

    @classmethod
    def of(cls, fitted: NgramBaseline) -> "StoredBaseline":
        """What to keep of a baseline."""
        trial = fitted.trial
        counts, linear, analyser = trial.counts, trial.linear, trial.setting.analyser
        record = BaselineRecord(
            unit=analyser.unit,
            longest=analyser.longest,
            temperature=fitted.temperature,
            classes=fitted.classes,
            multi_label=fitted.multi_label,
            chosen=fitted.described,
        )
        idf = counts.idf if trial.setting.idf else np.ones(len(counts.columns))
        buckets = counts.columns.astype(np.int32)
        weights, bias = linear.weights.astype(np.float32), linear.bias.astype(np.float32)
        return cls(record, buckets, weights, bias, idf.astype(np.float32))

    def probabilities(self, texts: Sequence[str]) -> Float[np.ndarray, "N C"]:
        """How likely each label is for each text."""
        scores = np.stack([self.bias + self._features(text)[1].sum(axis=0) for text in texts])
        logits = logits_of(scores, self.record.classes, self.record.multi_label)
        return to_probabilities(
            logits, self.record.temperature, multi_label=self.record.multi_label
        )

    def weights_in(self, text: str) -> list[WeightedNgram]:
        """The n-grams of a text that it knows, with what each adds to the score of each label.

        For one label of several, a score is the log-odds of that label against all others.
        """
        ngrams, added = self._features(text)
        if self.record.classes == 2 and not self.record.multi_label:
            added = np.concatenate([-added / 2, added / 2], axis=1)
        return [WeightedNgram(*pair) for pair in zip(ngrams, added, strict=True)]

    def knows(self, text: str) -> bool:
        """Whether it knows a word of the text, or a character that is not a space.

        Where an n-gram is known, its parts are: no row has the one without the others.
        """
        parts = [part for part in ngrams_of(text, Analyser(self.record.unit, 1)) if part.strip()]
        return bool(self._knows(buckets_of(parts)).any())

    def _knows(self, buckets: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        """Whether it has a weight for each; they are ordered, so that few are compared."""
        if not len(self.buckets):
            return np.zeros(len(buckets), dtype=bool)
        places = np.searchsorted(self.buckets, buckets)
        return self.buckets.take(places, mode="clip") == buckets

    def _features(self, text: str) -> tuple[list[str], Float[np.ndarray, "n K"]]:
        """The n-grams of a text that are known, and what they add to the scores.

        N-grams that share a bucket share its weight, according to how often each occurs.
        """
        counted = Counter(ngrams_of(text, Analyser(self.record.unit, self.record.longest)))
        every = list(counted)
        buckets = buckets_of(every)
        known = np.flatnonzero(self._knows(buckets))
        ngrams = [every[number] for number in known]
        columns, owner = np.unique(
            np.searchsorted(self.buckets, buckets[known]), return_inverse=True
        )
        counts = np.array([counted[ngram] for ngram in ngrams], dtype=float)
        total = np.bincount(owner, counts, minlength=len(columns))
        features = (1 + np.log(total)) * self.idf[columns]
        features /= np.sqrt((features**2).sum()) or 1.0
        shares = (features / total)[owner] * counts
        return ngrams, shares[:, None] * self.weights[columns[owner]]

    def save(self, folder: Path) -> None:
        """Write the two files, each at once."""
        arrays = {
            "buckets": self.buckets,
            "weights": np.ascontiguousarray(self.weights),
            "bias": self.bias,
            "idf": self.idf,
        }
        with replacing(folder / TENSORS) as half:
            save_file(arrays, half)
        write_json(asdict(self.record), folder / RECORD)

    @classmethod
    def load(cls, folder: Path) -> "StoredBaseline | None":
        """What `save` wrote; None if the run has no baseline."""
        if not (folder / RECORD).exists():
            return None
        try:
            record = fitting(BaselineRecord, read_json(folder / RECORD), "it")
            arrays = load_file(folder / TENSORS)
            found = cls(record, *(arrays[name] for name in ("buckets", "weights", "bias", "idf")))
            found.refuse_other_shapes()
        except (OSError, ValueError, KeyError, SafetensorError, GlassformerError) as error:
            raise GlassformerError(
                f"{folder / RECORD}: not the baseline of a run ({error}); copy the run again"
            ) from None
        return found

    def refuse_other_shapes(self) -> None:
        """Refuse arrays that do not belong together."""
        record, known = self.record, len(self.buckets)
        models = 1 if record.classes == 2 and not record.multi_label else record.classes
        shapes = self.weights.shape, self.bias.shape, self.idf.shape
        if shapes != ((known, models), (models,), (known,)):
            raise ValueError(
                f"its shapes {shapes} do not fit {known:,} n-grams and {models} labels"
            )
