"""The report at the end: how good a run is, beside an honest baseline on the same rows."""

from typing import Any

import numpy as np

from glassformer.errors import GlassformerError
from glassformer.evaluation.baseline import NgramBaseline
from glassformer.evaluation.report import (
    Report,
    Sections,
    Table,
    classification_sections,
    comparison_table,
    side_by_side,
    write_report,
)
from glassformer.metrics.paired import Comparison
from glassformer.metrics.score import Score
from glassformer.runs.curve import Curve
from glassformer.runs.display import Display, clock
from glassformer.runs.folder import RunFolder
from glassformer.runs.log import curves, troubles
from glassformer.runs.prediction import prediction_fact
from glassformer.runs.pretraining import decision_note
from glassformer.runs.teaching import Taught, answers_on
from glassformer.tasks.class_answers import ClassAnswers
from glassformer.tasks.classify import Classify

MOST_ROWS = 100_000  # that a baseline learns from: more would not fit every memory
OURS = "this model"
CHANCE = 0.05  # a difference that chance explains more often than this is none
FEW = 50  # validation rows; fewer choose a model by luck


def report_on(
    taught: Taught,
    folder: RunFolder,
    display: Display,
    *,
    curve: Curve | None = None,
) -> Report:
    """Score a run on the part held out, train the baseline, and write report.json and .html."""
    job = taught.job
    part = "test" if len(job.lengths("test")) else "valid"
    notes = [*intake_notes(folder), *decision_note(folder), *troubles(folder.metrics)]
    scores: dict[str, dict[str, Score]] = {}
    tables, sections = [], None
    if len(job.lengths(part)):
        with display.waiting("evaluating"):
            answers = answers_on(job, taught.model, taught.plan, part)
        scores[OURS] = job.scores(answers)
        chosen_by = len(job.lengths("valid"))
        if 0 < chosen_by < FEW:
            notes.append(f"Only {chosen_by} validation rows chose the model: others might not.")
        if part == "valid":
            notes.append(
                "There is no test part: these rows also chose the model, so the scores flatter it."
            )
        if isinstance(job, Classify):
            sections = sections_of(job, answers, part)
            with display.waiting("training the baseline"):
                name, theirs = baseline(job, part, notes)
            if theirs is not None:
                scores[name] = job.scores(theirs)
                comparison = job.compare(answers, theirs)
                notes.insert(0, verdict(comparison[job.goal], len(answers.labels)))
                tables.append(comparison_table(comparison, OURS, name))
                tables.append(rows_beside(job, answers, theirs, part))
    if curve is not None:
        tables.append(curve.table())
        notes.append(curve.sentence())
    report = Report(
        title=folder.path.name,
        facts=facts(taught, folder, part),
        scores=scores,
        curves=curves(folder.metrics),
        tables=[*(sections.tables if sections else ()), *tables],
        heat_map=sections.heat_map if sections else None,
        reliability=sections.reliability if sections else (),
        notes=notes,
    )
    write_report(report, folder.path)
    return report


def verdict(found: Comparison, rows: int) -> str:
    """What the comparison with the baseline comes to, in a sentence."""
    chance = f"(p = {max(found.p_value, 0.001):.2g})" if found.p_value >= 0.001 else "(p < 0.001)"
    if found.p_value > CHANCE:
        return f"On {rows:,} rows it cannot be told apart from the baseline {chance}."
    better = "better" if found.difference.value > 0 else "worse"
    points = abs(100 * found.difference.value)
    return f"On {rows:,} rows it is {better} than the baseline by {points:.1f} points {chance}."


def facts(taught: Taught, folder: RunFolder, part: str) -> dict[str, str | int | float | None]:
    """What was run, on what, and how."""
    config, rows = taught.config, folder.intake().get("counts", {})
    counted = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    command = folder.command()
    return {
        "job": config.job,
        "data": ", ".join(config.data.files),
        "rows": counted,
        "scored on": f"{part} part",
        "parameters": f"{sum(p.numel() for p in taught.model.parameters()):,}",
        "steps": f"{taught.steps:,} of {taught.plan.steps:,}, kept {taught.kept}",
        "time learning": clock(taught.seconds),
        **prediction_fact(folder),
        "machine": taught.plan.machine.described,
        "seed": config.seed,
        "glassformer": config.version,
        **({"command": command} if command else {}),
    }


def intake_notes(folder: RunFolder) -> list[str]:
    """What was left out of the data, and what is there twice."""
    intake = folder.intake()
    return [
        f"Left out: {entry['count']:,} rows with {reason}, the first is {entry['first']}."
        for reason, entry in intake.get("skipped", {}).items()
    ] + [
        f"{entry['count']:,} texts of the {part} part are also in the training part, the first is "
        f"{entry['first']}: scores on it flatter."
        for part, entry in intake.get("shared", {}).items()
    ]


def sections_of(job: Classify, answers: ClassAnswers, part: str) -> Sections:
    """What a classifier's report shows besides scores."""
    assert job.samples is not None
    texts = job.samples.texts(part)
    return classification_sections(answers.labels, answers.probabilities(), job.labels.names, texts)


def rows_beside(job: Classify, ours: ClassAnswers, theirs: ClassAnswers, part: str) -> Table:
    """Some rows with what the model and the baseline say about them."""
    assert job.samples is not None
    said = ours.probabilities(), theirs.probabilities()
    return side_by_side(ours.labels, *said, job.labels.names, job.samples.texts(part))


def baseline(job: Classify, part: str, notes: list[str]) -> tuple[str, ClassAnswers | None]:
    """N-grams and a linear model, trained and chosen on the same parts as ours."""
    assert job.samples is not None
    rows = {name: job.samples.rows(name) for name in ("train", "valid", part)}
    if len(rows["train"]) > MOST_ROWS:
        chosen = np.random.default_rng(job.config.seed).permutation(rows["train"])[:MOST_ROWS]
        rows["train"] = np.sort(chosen)
        notes.append(f"The baseline learned from {MOST_ROWS:,} of the training rows.")
    texts = {name: [job.samples[n]["text"] for n in some] for name, some in rows.items()}
    truth = {name: job.truth[some] for name, some in rows.items()}
    try:
        fitted = NgramBaseline.fit(
            texts["train"], truth["train"], texts["valid"], truth["valid"], len(job.labels.names)
        )
    except GlassformerError as error:  # scikit-learn is not installed
        notes.append(f"No baseline: {error}")
        return "", None
    return f"n-grams ({fitted.described})", as_answers(
        fitted.probabilities(texts[part]), truth[part]
    )


def baseline_seconds(folder: RunFolder) -> float:
    """About how long the baseline will take: it reads every n-gram once a label, some times."""
    config = folder.config()
    job = folder.job(config, folder.data)
    if not isinstance(job, Classify) or job.samples is None:
        return 0.0
    megabytes = job.samples.records.rows.lengths.sum() / 1e6
    labels = len(job.labels.names)
    return 2.0 + 1.5 * megabytes * (1 if labels == 2 else 0.5 * labels)


def as_answers(probabilities: np.ndarray, labels: np.ndarray) -> ClassAnswers:
    """Probabilities as what our own models say."""
    safe: Any = np.clip(probabilities, 1e-30, 1 - 1e-12 if labels.ndim == 2 else 1.0)
    logits = np.log(safe) - (np.log1p(-safe) if labels.ndim == 2 else 0.0)
    return ClassAnswers(logits.astype(np.float32), labels.astype(np.int64))
