"""The honest baselines, trained on the rows of a run and asked about the same rows.

    classify     n-grams and a linear model
    translate    a translation memory

Without scikit-learn there is none, and a note says so.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Int

from glassformer.errors import GlassformerError
from glassformer.tasks.classify.answers import ClassAnswers
from glassformer.tasks.classify.ngram_baseline import NgramBaseline
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.tasks.translate.answers import Translations
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.translation_memory import TranslationMemory

MOST_ROWS = 100_000  # that a baseline learns from: more would not fit every memory
LOOKED_AT = 500  # rows that tell how long the others are
TER_SECONDS = 1.3e-6  # of a row, for the cube of its words; measured with answers that are good


def ngram_baseline(
    job: ClassifyTask, part: str, notes: list[str]
) -> tuple[str, ClassAnswers | None]:
    """N-grams and a linear model, trained and chosen on the same parts as ours."""
    assert job.samples is not None
    rows = {name: job.samples.rows(name) for name in ("valid", part)}
    rows["train"] = rows_learned_from(job, notes)
    try:
        fitted = fit_ngrams(job, rows)
    except GlassformerError as error:  # scikit-learn is not installed
        notes.append(f"No baseline: {error}")
        return "", None
    said = fitted.probabilities([job.samples[row]["text"] for row in rows[part]])
    return f"n-grams ({fitted.described})", as_answers(said, job.truth[rows[part]])


def fit_ngrams(job: ClassifyTask, rows: Mapping[str, np.ndarray]) -> NgramBaseline:
    """N-grams learned from some rows of train, and chosen on some of valid."""
    samples = job.samples
    assert samples is not None
    train, valid = (
        ([samples[row]["text"] for row in rows[part]], job.truth[rows[part]])
        for part in ("train", "valid")
    )
    return NgramBaseline.fit(*train, *valid, len(job.labels.names))


def as_answers(probabilities: np.ndarray, labels: np.ndarray) -> ClassAnswers:
    """Probabilities as what our own models say."""
    safe: Any = np.clip(probabilities, 1e-30, 1 - 1e-12 if labels.ndim == 2 else 1.0)
    logits = np.log(safe) - (np.log1p(-safe) if labels.ndim == 2 else 0.0)
    return ClassAnswers(logits.astype(np.float32), labels.astype(np.int64))


def memory_baseline(
    job: TranslateTask, part: str, notes: list[str]
) -> tuple[str, Translations | None]:
    """A translation memory of the training rows, one a target language."""
    assert job.samples is not None
    asked = job.samples.rows(part).tolist()
    train = by_language(job, rows_learned_from(job, notes).tolist())
    said, described = dict.fromkeys(asked, ""), ""
    for language, rows in by_language(job, asked).items():
        known = train.get(language)
        if known is None:  # none of its rows is among those learned from
            continue
        try:
            targets = [job.right_answers(row)[0] for row in known]
            memory = TranslationMemory.of(sources(job, known), targets)
        except GlassformerError as error:  # scikit-learn is not installed
            notes.append(f"No baseline: {error}")
            return "", None
        said |= zip(rows, memory(sources(job, rows)), strict=True)
        described = memory.described
    meant = [job.right_answers(row) for row in asked]
    answers = Translations(list(said.values()), meant, job.task.measure)
    return f"translation memory ({described})", answers


def memory_seconds(known: int, asked: int) -> float:
    """About how long a translation memory takes to be made and asked."""
    return 1.0 + 5e-5 * min(known, MOST_ROWS) + 3e-8 * min(known, MOST_ROWS) * asked


def scoring_seconds(job: TranslateTask, rows: Int[np.ndarray, " rows"]) -> float:
    """About how long the scores of translations take: TER grows with the cube of their words."""
    if job.task.measure != "text" or not len(rows):
        return 0.0
    some = rows[:: max(1, len(rows) // LOOKED_AT)].tolist()
    words = np.array([len(job.right_answers(row)[0].split()) for row in some])
    return TER_SECONDS * len(rows) * float((words**3.0).mean())


def by_language(job: TranslateTask, rows: list[int]) -> dict[str, list[int]]:
    """The rows of each target language; all of them in one where rows name none."""
    assert job.samples is not None
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[job.samples[row].get("to", "") if job.pair.tags else ""].append(row)
    return found


def sources(job: TranslateTask, rows: list[int]) -> list[str]:
    """The texts of some samples as the translator reads them."""
    assert job.samples is not None
    return [job.pair.source.clean(job.samples[row]["source"]) for row in rows]


def rows_learned_from(
    job: ClassifyTask | TranslateTask, notes: list[str]
) -> Int[np.ndarray, " rows"]:
    """The training rows, or some of them where there are very many."""
    assert job.samples is not None
    rows = job.samples.rows("train")
    if len(rows) <= MOST_ROWS:
        return rows
    notes.append(f"The baseline learned from {MOST_ROWS:,} of the training rows.")
    return np.sort(np.random.default_rng(job.config.seed).permutation(rows)[:MOST_ROWS])
