"""The n-gram model as a run keeps it: n-grams and their weights, used without scikit-learn.

`baseline.safetensors` holds the buckets that n-grams are hashed to, a row of weights for each, and
the biases; `baseline.json` says how texts become n-grams and weights become probabilities. Many
texts are read at once, as arrays (`ngram_spans`).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.numpy import save_file

from glassformer.config.values import fitting
from glassformer.errors import GlassformerError
from glassformer.files import read_arrays, read_json, replacing, write_json
from glassformer.metrics.calibration import Logits, Probabilities, to_probabilities
from glassformer.tasks.classify.linear import logits_of
from glassformer.tasks.classify.ngram_baseline import NgramBaseline
from glassformer.tasks.shared.ngram_hashing import (
    bucket_of,
    buckets_of,
    ngrams_of,
    telling_parts,
)
from glassformer.tasks.shared.ngram_spans import (
    Spans,
    buckets_of_spans,
    chunks,
    most_of_each,
    spans_of,
    telling_spans,
)
from glassformer.tasks.shared.ngrams import BUCKETS, Analyser

MANY = 32  # texts that are quicker to look up at once than one by one
TENSORS, RECORD = "baseline.safetensors", "baseline.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class BaselineRecord:
    """How a stored baseline reads texts and answers.

    Attributes:
        analysers: What it counts; each has a range of `BUCKETS` numbers of its own.
        unit, longest: The only analyser, in runs of earlier versions.
        chosen: Its settings, in a few words.
    """

    temperature: float
    classes: int
    multi_label: bool
    chosen: str
    analysers: tuple[Analyser, ...] = ()
    unit: str | None = None
    longest: int | None = None


class WeightedNgram(NamedTuple):
    """An n-gram of a text and what it adds to the score of each label."""

    ngram: str
    weights: Float[np.ndarray, " C"]
    unit: str


class Features(NamedTuple):
    """The n-grams of some texts that are known, text by text.

    Attributes:
        first: Where each stands first, a number of `spans`.
    """

    text_of: Int[np.ndarray, " n"]
    columns: Int[np.ndarray, " n"]
    values: Float[np.ndarray, " n"]
    spans: Spans
    first: Int[np.ndarray, " n"]


@dataclass(frozen=True, eq=False)
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
        trial, setting = fitted.trial, fitted.trial.setting
        record = BaselineRecord(
            temperature=fitted.temperature,
            classes=fitted.classes,
            multi_label=fitted.multi_label,
            chosen=fitted.described,
            analysers=setting.analysers,
        )
        numbered = [BUCKETS * n + counts.columns for n, counts in enumerate(trial.counts)]
        idf = [counts.idf if setting.idf else np.ones_like(counts.idf) for counts in trial.counts]
        return cls(
            record,
            np.concatenate(numbered).astype(np.int32),
            trial.linear.weights.astype(np.float32),
            trial.linear.bias.astype(np.float32),
            np.concatenate(idf).astype(np.float32),
        )

    @property
    def analysers(self) -> tuple[Analyser, ...]:
        """What it counts."""
        record = self.record
        if record.unit is not None and record.longest is not None:
            return (Analyser(record.unit, record.longest),)
        return record.analysers

    @property
    def excludes(self) -> bool:
        """Whether it scores two labels that exclude each other, by one number."""
        return self.record.classes == 2 and not self.record.multi_label

    def probabilities(self, texts: Sequence[str]) -> Probabilities:
        """How likely each label is for each text."""
        return to_probabilities(self.logits(texts), multi_label=self.record.multi_label)

    def logits(self, texts: Sequence[str]) -> Logits:
        """The logits of these probabilities."""
        scores = [self._scores(some) for some in chunks(texts)]
        joined = np.concatenate(scores) if scores else np.zeros((0, len(self.bias)))
        logits = logits_of(joined, self.record.classes, self.record.multi_label)
        return logits / self.record.temperature

    def _scores(self, texts: Sequence[str]) -> Float[np.ndarray, "N K"]:
        """The scores of the linear models."""
        total, weights = np.tile(self.bias.astype(float), (len(texts), 1)), self._weights
        for number in range(len(self.analysers)):
            found = self._features(texts, number)
            offsets = np.searchsorted(found.text_of, np.arange(len(texts)))
            columns, values = torch.from_numpy(found.columns), torch.from_numpy(found.values)
            total += F.embedding_bag(
                columns,
                weights,
                torch.from_numpy(offsets),
                mode="sum",
                per_sample_weights=values.float(),
            ).numpy()
        return total

    @cached_property
    def _weights(self) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.weights))

    @cached_property
    def _column_of(self) -> Int[np.ndarray, " numbers"]:
        """The row of weights of every bucket, -1 for those it does not know."""
        columns = np.full(len(self.analysers) * BUCKETS, -1, dtype=np.int32)
        columns[self.buckets] = np.arange(len(self.buckets))
        return columns

    def _features(self, texts: Sequence[str], number: int) -> Features:
        """What one of the analysers finds; the values of a text have a length of 1."""
        spans = spans_of(texts, self.analysers[number])
        columns = self._column_of[number * BUCKETS + buckets_of_spans(spans)]
        known = np.flatnonzero(columns >= 0)
        keys = spans.text_of[known].astype(np.int64) * len(self.buckets) + columns[known]
        # Numbers are sorted much faster than their places, so each carries its own.
        keys, places = np.divmod(np.sort(keys * len(keys) + np.arange(len(keys))), len(keys))
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        keys, counts = keys[starts], np.diff(starts, append=len(keys))
        text_of, column = np.divmod(keys, max(1, len(self.buckets)))
        values = (1 + np.log(counts)) * self.idf[column]
        values /= np.sqrt(np.bincount(text_of, values**2, minlength=len(texts)))[text_of]
        return Features(text_of, column, values, spans, known[places[starts]])

    def strongest(
        self, texts: Sequence[str], labels: Int[np.ndarray, " N"], count: int
    ) -> list[list[tuple[WeightedNgram, float]]]:
        """The n-grams of each text that count most for or against its label, and how much."""
        found: list[list[tuple[WeightedNgram, float]]] = [[] for _ in texts]
        for number, analyser in enumerate(self.analysers):
            one = self._features(texts, number)
            added = one.values[:, None] * self.weights[one.columns]
            if self.excludes:
                added = np.concatenate([-added / 2, added / 2], axis=1)
            strength = added[np.arange(len(added)), labels[one.text_of]]
            for place in most_of_each(one.text_of, np.abs(strength), count).tolist():
                ngram = one.spans.written(int(one.first[place]))
                weighted = WeightedNgram(ngram, added[place], analyser.unit)
                found[one.text_of[place]].append((weighted, float(strength[place])))
        return [sorted(some, key=lambda pair: -abs(pair[1]))[:count] for some in found]

    def weights_in(self, text: str) -> list[WeightedNgram]:
        """The n-grams of a text that it knows, with what each adds to the score of each label.

        For one label of several, a score is the log-odds of that label against all others. N-grams
        that share a bucket share its weight, according to how often each occurs.
        """
        found = []
        for number, analyser in enumerate(self.analysers):
            one = self._features([text], number)
            ngrams, times = np.unique(list(ngrams_of(text, analyser)), return_counts=True)
            columns = self._column_of[number * BUCKETS + buckets_of(ngrams.tolist())]
            known = np.flatnonzero(columns >= 0)
            place = np.searchsorted(one.columns, columns[known])
            total = np.bincount(place, times[known], minlength=len(one.columns))
            shares = (one.values / total)[place] * times[known]
            added = shares[:, None] * self.weights[columns[known]]
            if self.excludes:
                added = np.concatenate([-added / 2, added / 2], axis=1)
            found += [
                WeightedNgram(str(ngrams[place]), one, analyser.unit)
                for place, one in zip(known, added, strict=True)
            ]
        return found

    def knows(self, text: str) -> bool:
        """Whether it knows a word of the text, or two characters of one side by side.

        A single letter says nothing; a Chinese character, or one that is all there is, does.
        """
        return any(
            self._column_of[number * BUCKETS + bucket_of(part)] >= 0
            for number, analyser in enumerate(self.analysers)
            for part in telling_parts(text, analyser)
        )

    def knows_each(self, texts: Sequence[str]) -> list[bool]:
        """The same for many texts; few of them are left for `knows`."""
        if len(texts) < MANY:
            return [self.knows(text) for text in texts]
        known = np.zeros(len(texts), dtype=bool)
        for number, analyser in reversed([*enumerate(self.analysers)]):  # characters, then words
            left = np.flatnonzero(~known)
            spans = telling_spans([texts[row] for row in left.tolist()], analyser)
            columns = self._column_of[number * BUCKETS + buckets_of_spans(spans)]
            known[left[spans.text_of[columns >= 0]]] = True
        found = zip(known.tolist(), texts, strict=True)
        return [at_once or self.knows(text) for at_once, text in found]

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
            arrays = read_arrays(folder / TENSORS)
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
        models = 1 if self.excludes else record.classes
        shapes = self.weights.shape, self.bias.shape, self.idf.shape
        if shapes != ((known, models), (models,), (known,)):
            raise ValueError(
                f"its shapes {shapes} do not fit {known:,} n-grams and {models} labels"
            )
        if known and not 0 <= self.buckets.min() <= self.buckets.max() < BUCKETS * len(
            self.analysers
        ):
            raise ValueError(f"its n-grams are not below {BUCKETS * len(self.analysers):,}")
