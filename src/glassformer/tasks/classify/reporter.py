"""The report of a classifier: its baseline, and n-grams as a part of the model."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float, Int

from glassformer.data.samples import Sample
from glassformer.errors import GlassformerError
from glassformer.reports import Table
from glassformer.tasks.classify.blend import Blend
from glassformer.tasks.classify.mended import mended_tables
from glassformer.tasks.classify.ngram_baseline import (
    TUNED_ON,
    NgramBaseline,
    ngrams_counted,
    seconds_of_first,
)
from glassformer.tasks.classify.sequences import SequenceInputs
from glassformer.tasks.classify.sounds import SoundInputs
from glassformer.tasks.classify.stored_baseline import StoredBaseline
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.classify.texts import TextInputs
from glassformer.tasks.classify.votes import VOTES, votes
from glassformer.tasks.reporter import Baseline
from glassformer.tasks.shared.label_answers import ClassAnswers
from glassformer.tasks.shared.label_reporter import LabelReporter
from glassformer.tasks.shared.nearest import NearestRecordings, StoredNearest
from glassformer.tasks.shared.ngrams import (
    MOST_CHARACTERS,
    MOST_ROWS,
    learn,
    rows_learned_from,
)

BASELINE_TRY = 3.0  # seconds, about, of a timed trial of the baseline
TIMED_SHARE, FEW_TIMED = 8, 200  # one row in so many is timed, but at least so many rows
TRIALS = 5  # settings that the baseline tries, about
MOST_REFITTED = 50_000  # training rows; to more, the validation rows add too little to wait for
CUT_SHORT = "n-grams with fewer settings: the time budget left no time to try all"
ALONE = (
    "The n-grams alone were best on the validation rows, so the run answers with them; the network "
    "is not used."
)
LEARNED_MORE = (
    "N-grams, those of the baseline as well, learned the training and validation rows, the network "
    "the training rows alone."
)


class ClassifyReporter(LabelReporter[ClassifyTask]):
    """For texts or recordings with one label or several."""

    def complete(self, answers: ClassAnswers) -> list[str]:
        """Fit n-grams to the training rows, and what they weigh to the validation rows."""
        task, wanted = self.task, self.task.config.model.ngrams
        if not isinstance(task.inputs, TextInputs) or wanted == "no":
            return []
        if (reason := self._no_ngrams()) is not None:
            if wanted == "yes":
                raise GlassformerError(reason)
            return [reason]
        fitted = self._fit_ngrams()
        alone = answers.without_ngrams().at(task.labels.temperature)
        fixed = task.settings.threshold
        blend = Blend.fit(
            alone.logits,
            fitted.valid_logits,
            answers.labels,
            always=wanted == "yes",
            threshold=fixed,
        )
        self._keep(threshold=blend.threshold)
        stored = self._final(fitted, kept=blend.kept)
        stored.save(task.folder)
        blend.save(task.folder)
        task.stored, task.blend = stored, blend if blend.kept else None
        return [CUT_SHORT] if fitted.cut_short else []  # the decision is in the report

    def plan_notes(self) -> list[str]:
        if not isinstance(self.task.inputs, TextInputs) or self.task.config.model.ngrams == "no":
            return []
        if (reason := self._no_ngrams()) is not None:
            return [reason]
        rows = self._all_rows()
        samples, _ = self._data()
        every = -(-len(rows) // self._tuned_on(len(rows)))
        texts = [samples[row]["text"] for row in rows[::every].tolist()]
        models = 1 if len(self.task.labels.names) == 2 else len(self.task.labels.names)
        size = every * ngrams_counted(texts, models)
        auto = self.task.config.model.ngrams == "auto"
        return [
            f"Not included: n-grams{', if they help on the validation rows' * auto}: at most about "
            f"{size * models:,} parameters, {size * (models + 2) * 4 / 1e6:.1f} MB."
        ]

    def decisions(self) -> list[str]:
        task = self.task
        if not isinstance(task.inputs, TextInputs) or task.config.model.ngrams == "no":
            return super().decisions()
        found = Blend.load(task.folder)
        if found is None:
            reason = self._no_ngrams()
            return [*([] if reason is None else [reason]), *super().decisions()]
        differ = found.kept and self._learns_valid(kept=True) and not task.config.train.refit
        return [found.sentence, *([LEARNED_MORE] if differ else []), *super().decisions()]

    def parts(self, answers: ClassAnswers) -> Mapping[str, ClassAnswers]:
        if answers.ngrams is None:
            return {}
        config, encoder = self.task.config, self.task.config.model.encoder
        attends = not config.own_model and encoder is not None and encoder.kind == "attention"
        return {"Transformer alone" if attends else "encoder alone": answers.without_ngrams()}

    def part_tables(
        self,
        ours: ClassAnswers,
        parts: Mapping[str, ClassAnswers],
        theirs: ClassAnswers,
        samples: Sequence[Sample],
    ) -> list[Table]:
        names, texts = self.task.labels.names, self._shown(samples)
        return [
            table
            for name, alone in parts.items()
            for table in mended_tables(
                ours.labels,
                {name: alone, "n-grams alone": theirs},
                ours,
                names,
                texts,
            )
        ]

    def baseline(self, split: str) -> Baseline[ClassAnswers]:
        """N-grams and a linear model, or the nearest recordings, on the same splits as ours."""
        if not isinstance(self.task.inputs, TextInputs):
            return self._nearest(split)
        samples, label_ids = self._data()
        numbers = samples.rows(split)
        known = self._known_rows(kept=self.task.blend is not None)
        _, notes = rows_learned_from(known, self.task.config.seed)
        if (stored := self.task.stored) is None:
            fitted = self._fit_ngrams()
            stored = self._final(fitted, kept=False)
            notes = [*notes, *([f"{CUT_SHORT}."] if fitted.cut_short else [])]
        chances = stored.probabilities([samples[row]["text"] for row in numbers.tolist()])
        threshold = self.task.labels.baseline_threshold
        answers = ClassAnswers.of_probabilities(chances, label_ids[numbers], threshold)
        alone = ALONE if self.task.blend is not None and not self.task.blend.model else None
        return Baseline("n-grams", stored.record.chosen, answers, notes, stored.save, alone)

    def _fit_ngrams(self) -> NgramBaseline:
        """The n-gram model of the training rows, tuned on the validation rows."""
        samples, label_ids = self._data()
        train, _ = rows_learned_from(samples.rows("train"), self.task.config.seed)
        fitted = self.fit_ngrams({"train": train, "valid": samples.rows("valid")})
        if len(valid := samples.rows("valid")):
            self._choose_for_baseline(ClassAnswers(fitted.valid_logits, label_ids[valid]))
        return fitted

    def _no_ngrams(self) -> str | None:
        """Why the model cannot have n-grams as a part; None if it can."""
        samples, _ = self._data()
        if not len(samples.rows("valid")):
            return (
                "No n-grams: there are no validation rows to weigh them; give some with --valid or "
                "--set data.valid_share=0.1."
            )
        try:
            learn("linear_model", "they need")
        except GlassformerError as error:
            return f"No n-grams: {error}."
        return None

    def _learns_valid(self, *, kept: bool) -> bool:
        """Whether n-grams learn the validation rows, too, once these decide nothing more.

        The network learns them with `train.refit`, and a baseline should know what it knows.

        Args:
            kept: Whether the n-grams are a part of the model.
        """
        samples, _ = self._data()
        refit = self.task.config.train.refit
        if refit is False or not all(len(samples.rows(split)) for split in ("valid", "test")):
            return False
        return refit is True or (kept and len(samples.rows("train")) <= MOST_REFITTED)

    def _known_rows(self, *, kept: bool) -> Int[np.ndarray, " rows"]:
        """The rows that a baseline learns."""
        samples, _ = self._data()
        return self._all_rows() if self._learns_valid(kept=kept) else samples.rows("train")

    def _final(self, fitted: NgramBaseline, *, kept: bool) -> StoredBaseline:
        """What the run keeps: the same, of the validation rows as well where these are learned."""
        if not self._learns_valid(kept=kept):
            return StoredBaseline.of(fitted)
        samples, label_ids = self._data()
        rows, _ = rows_learned_from(self._all_rows(), self.task.config.seed)
        texts = [samples[row]["text"] for row in rows.tolist()]
        return StoredBaseline.of(fitted.refitted(texts, label_ids[rows], self._class_weights))

    def _all_rows(self) -> Int[np.ndarray, " rows"]:
        """The training and the validation rows."""
        samples, _ = self._data()
        return np.sort(np.concatenate([samples.rows("train"), samples.rows("valid")]))

    def _nearest(self, split: str) -> Baseline[ClassAnswers]:
        """The votes of the most similar training recordings, or sequences."""
        (samples, label_ids), inputs = self._data(), self.task.inputs
        assert isinstance(inputs, SoundInputs | SequenceInputs)
        store = inputs.sounds if isinstance(inputs, SoundInputs) else inputs.sequences
        known, numbers = self._known_rows(kept=False)[:MOST_ROWS], samples.rows(split)
        memory = NearestRecordings.of(store[row] for row in known.tolist())

        def chances_of(rows: Int[np.ndarray, " rows"]) -> Float[np.ndarray, "rows C"]:
            nearest = memory((store[row] for row in rows.tolist()), VOTES)
            return votes(label_ids[known][nearest], len(self.task.labels.names))

        valid = samples.rows("valid")
        if self.task.labels.multi and len(valid):
            self._choose_for_baseline(
                ClassAnswers.of_probabilities(chances_of(valid), label_ids[valid])
            )
        chances = chances_of(numbers)
        threshold = self.task.labels.baseline_threshold
        answers = ClassAnswers.of_probabilities(chances, label_ids[numbers], threshold)
        sounds = isinstance(inputs, SoundInputs)
        stored = StoredNearest(memory, label_ids[known].tolist())
        name, chosen = f"nearest {inputs.noun}s", f"{VOTES} by mean features"
        return Baseline(name, chosen, answers, save=stored.save if sounds else None)

    def fit_ngrams(self, rows: Mapping[str, np.ndarray]) -> NgramBaseline:
        """The baseline, trained on some rows of train and tuned on some of valid."""
        samples, label_ids = self._data()
        train, valid = (
            ([samples[row]["text"] for row in rows[split]], label_ids[rows[split]])
            for split in ("train", "valid")
        )
        classes = len(self.task.labels.names)
        return NgramBaseline.fit(*train, *valid, classes, self._class_weights, self.seconds)

    def _tuned_on(self, rows: int) -> int:
        """How many of so many rows settings are tried on, about."""
        samples, _ = self._data()
        each = float(samples.records.rows.lengths.mean())
        return max(1, min(TUNED_ON, rows, int(MOST_CHARACTERS / max(1.0, each))))

    @property
    def _class_weights(self) -> Float[np.ndarray, " C"] | None:
        """What a row of each label counts; None if all count the same."""
        return self.task.labels.weights if self.task.settings.class_weights else None

    def baseline_seconds(self) -> float:
        """It reads every n-gram several times per label, or every recording once."""
        if self.task.samples is None:
            return 0.0
        if not isinstance(self.task.inputs, TextInputs):
            return 1.0 + 2e-4 * len(self.task.samples)
        megabytes = float(self.task.samples.records.rows.lengths.sum()) / 1e6
        labels = len(self.task.labels.names)
        return 2.0 + 1.5 * megabytes * (1 if labels == 2 else 0.25 * labels)

    def cheapest_seconds(self) -> float:
        """One setting of n-grams, fitted to the training rows, and once more to all rows."""
        if self.task.samples is None or not isinstance(self.task.inputs, TextInputs):
            return 0.0
        samples, label_ids = self._data()
        rows = samples.rows("train")
        some = rows[:: max(1, min(TIMED_SHARE, len(rows) // FEW_TIMED))]
        texts = [samples[row]["text"] for row in some.tolist()]
        try:
            learn("linear_model")  # an import that takes long, but not longer for more rows
            seconds = seconds_of_first(texts, label_ids[some], len(self.task.labels.names))
        except GlassformerError:  # without scikit-learn there are no n-grams
            return 0.0
        learned = min(MOST_ROWS, len(rows))
        tuned = min(learned, self._tuned_on(learned))
        again = learned * ((learned > tuned) + self._learns_valid(kept=True))
        return seconds * (tuned + again) / len(some)

    def timed_baseline_seconds(self) -> float:
        """Extrapolated from a share of the rows: tuning grows with them up to a limit."""
        if self.task.samples is None or not isinstance(self.task.inputs, TextInputs):
            return self.baseline_seconds()
        every = max(1, round(self.baseline_seconds() / BASELINE_TRY))
        rows = {split: self.task.samples.rows(split)[::every] for split in ("train", "valid")}
        tried, learned = len(rows["train"]), min(MOST_ROWS, len(self.task.samples.rows("train")))
        tuned = self._tuned_on(learned)
        times = learned / tried if learned <= tuned else (tuned + learned / TRIALS) / tried
        began = time.perf_counter()
        try:
            learn("linear_model")  # an import that takes long, but not longer for more rows
            importing = time.perf_counter() - began
            return importing + max(1.0, times) * self.fit_ngrams(rows).seconds
        except GlassformerError:  # without scikit-learn there is no baseline
            return 0.0
