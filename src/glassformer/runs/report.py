"""The final report: scores of a run beside an honest baseline on the same rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from glassformer import processes
from glassformer.data.splitter import Skipped, related_lines
from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score
from glassformer.reports import Report, Sections, Table, write_report
from glassformer.reports.tables import comparison_table
from glassformer.reports.wording import interval_notes
from glassformer.runs.display import Display, clock
from glassformer.runs.fit import FitResult, answers_on, listed
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.runs.forecast import prediction_fact
from glassformer.runs.learning_curve import Curve
from glassformer.runs.log import curves, troubles
from glassformer.runs.pretraining import decision_note
from glassformer.runs.settings import unused_reasons
from glassformer.runs.timing import Budget
from glassformer.runs.verdict import duel_table, duels, has_room, judgement, what_next
from glassformer.tasks import JOBS
from glassformer.tasks.job import AnyTask
from glassformer.tasks.reporter import Baseline, Reporter, Rival
from glassformer.training.loader import sample_rows
from glassformer.wording import counted

OURS = "this model"
FEW = 50  # validation rows; fewer make the choice noisy


def held_out(task: AnyTask) -> str:
    """The split that a report is on."""
    return "test" if len(task.lengths("test")) else "valid"


def final_answers(result: FitResult, folder: RunFolder, display: Display) -> Any:
    """The answers that a report is on, computed by all processes together; None without rows."""
    task, split = result.task, held_out(result.task)
    if not processes.is_first():  # which has calibrated its own task alone
        task = folder.open_task(result.config, folder.data)
    if not len(task.lengths(split)):
        return None
    with display.waiting("evaluating"):
        return answers_on(task, result.model, result.setup, split)


def report_on(
    result: FitResult,
    answers: Any,
    folder: RunFolder,
    display: Display,
    *,
    curve: Curve | None = None,
    budget: Budget | None = None,
) -> Report:
    """Score the final answers of a run, train the baseline, and write report.json and .html."""
    task, reporter = result.task, reporter_of(result.task)
    if budget is not None and budget.limited:
        budget.reserve = 0.0  # this is what it was for
        reporter.seconds = max(0.0, budget.left)
    split = held_out(task)
    notes = [
        *intake_notes(folder, JOBS[task.name].schema.noun),
        *decision_note(folder),
        *troubles(folder.metrics),
    ]
    notes += [f"{remark}." for remark in reporter.remarks()]
    notes += [] if task.objective_note is None else [task.objective_note]
    found = Findings()
    if len(task.lengths(split)):
        rows = sample_rows(len(task.lengths("valid")), result.setup.train.validate_rows)
        by_score = result.config.train.weights == "best"
        notes += choice_notes(len(rows) if by_score else 0, split, reporter.validated_unit)
        notes += refit_notes(result)
        found = findings(result, task.combine(answers, split), reporter, split, display)
    if curve is not None:
        found.tables.append(curve.table())
        found.notes.append(curve.sentence())
    report = Report(
        title=folder.path.name,
        facts=facts(result, folder, split),
        scores=found.scores,
        baseline=found.baseline,
        curves=curves(folder.metrics) | second_curves(folder.second_metrics),
        tables=[*found.sections.tables, *found.tables],
        heat_map=found.sections.heat_map,
        reliability=found.sections.reliability,
        verdict=found.verdict,
        notes=[*notes, *found.notes],
    )
    write_report(report, folder.path)
    return report


@dataclass(slots=True)
class Findings:
    """Scores, sections and notes on the answers of the model and the baseline."""

    scores: dict[str, dict[str, Score]] = field(default_factory=dict)
    sections: Sections = field(default_factory=Sections)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verdict: list[str] = field(default_factory=list)
    baseline: str | None = None


def findings(
    result: FitResult, answers: Any, reporter: Reporter[Any, Any], split: str, display: Display
) -> Findings:
    """What the answers to a split are worth, also beside those of the baseline."""
    task = result.task
    assert task.samples is not None
    samples = list(task.samples.of(split))
    found = Findings(
        scores={OURS: reporter.scores(answers)},
        sections=reporter.sections(answers, samples),
    )
    rivals = [
        replace(rival, answers=task.sampled(rival.answers, split))
        for rival in reporter.rivals(answers, split)
    ]
    baseline: Baseline[Any] | None = None
    if result.config.baseline:
        with display.waiting("training the baseline"):
            baseline, remarks = baseline_of(reporter, split)
        found.notes += remarks
    if baseline is not None:
        if baseline.save is not None:
            baseline.save(task.folder)
        own = Rival(baseline.kind, baseline.name, baseline.answers, is_baseline=True)
        rivals = [own, *rivals]
        tables = reporter.baseline_tables(answers, baseline.answers, samples)
        compared = reporter.compare(answers, baseline.answers)
        found.tables = [comparison_table(compared, OURS, baseline.name), *tables]
    scores = found.scores | {rival.name: reporter.scores(rival.answers) for rival in rivals}
    judge(found, scores, reporter, answers, rivals, baseline)
    if baseline is not None:
        found.scores[baseline.name] = scores[baseline.name]
        found.baseline = baseline.name
        parts = reporter.parts(answers)
        add_parts(found, reporter, answers, parts)
        found.tables += reporter.part_tables(answers, parts, baseline.answers, samples)
    found.scores |= {rival.name: scores[rival.name] for rival in rivals}
    found.notes = [*reporter.decisions(), *reporter.notes(answers), *found.notes]
    found.notes += interval_notes(found.scores, reporter.units(answers))
    return found


def judge(
    found: Findings,
    scores: Mapping[str, Mapping[str, Score]],
    reporter: Reporter[Any, Any],
    answers: Any,
    rivals: Sequence[Rival[Any]],
    baseline: Baseline[Any] | None,
) -> None:
    """Add the verdict to the findings, and what to do where it is not good.

    Args:
        scores: Those of the model first, then of the rivals by name.
    """
    task = reporter.task
    duelled = duels(reporter, answers, rivals, scores)
    instead = baseline.is_model if baseline is not None else None
    found.verdict = judgement(reporter, answers, rivals, scores, instead, duelled)
    if len(rivals) > 1 and duelled:
        found.tables[:0] = [duel_table(duelled)]
    duel = duelled.get(task.goal)
    if duel is not None and instead is None:
        kept = duel.rival.is_baseline and baseline is not None and baseline.save is not None
        sized = "model" not in unused_reasons(task.config)
        room = has_room(task.goal, scores[OURS][task.goal].value)
        folder = RunFolder(task.folder)
        found.verdict += what_next(duel, folder, kept=kept, room=room, sized=sized)


def add_parts(
    found: Findings, reporter: Reporter[Any, Any], answers: Any, parts: Mapping[str, Any]
) -> None:
    """The scores of parts of the model by themselves, and what the whole gains over each."""
    for name, part in parts.items():
        found.scores[name] = reporter.scores(part)
        found.tables.append(comparison_table(reporter.compare(answers, part), OURS, name))


def baseline_of(reporter: Reporter[Any, Any], split: str) -> tuple[Baseline[Any] | None, list[str]]:
    """The baseline of a job, if there is one, and notes on it."""
    try:
        found = reporter.baseline(split)
        if found is not None:
            found = replace(found, answers=reporter.task.sampled(found.answers, split))
    except GlassformerError as error:  # such as a library that is not installed
        return None, [f"No baseline: {error}"]
    return found, list(found.notes) if found else []


def choice_notes(chosen_by: int, split: str, unit: str) -> list[str]:
    """Caveats about the rows, or other units, that selected the model."""
    notes = []
    if 0 < chosen_by < FEW:
        notes.append(
            f"Only {counted(chosen_by, f'validation {unit}')} selected the model, so the choice is "
            f"noisy."
        )
    if split == "valid":
        notes.append(
            f"There is no test split: these {unit}s also helped to choose the model, so scores "
            f"are optimistic."
        )
    return notes


def refit_notes(result: FitResult) -> list[str]:
    """Whether the model has learned from more rows than the curves are of."""
    if result.refitted is None:
        return []
    return [
        f"The model was trained again on the training and validation rows together, for "
        f"{result.refitted.steps:,} steps; scores on validation rows are of the model before."
    ]


def second_curves(metrics: Path) -> dict[str, list[tuple[float, float]]]:
    """The training loss of a second training, which has no validation rows; empty without one."""
    found = curves(metrics)
    return {f"second {name}": points for name, points in found.items() if points}


def facts(result: FitResult, folder: RunFolder, split: str) -> dict[str, str | int | float | None]:
    """The facts of the run."""
    again = result.refitted
    config, rows = result.config, folder.intake().get("counts", {})
    sizes = ", ".join(f"{count:,} {name}" for name, count in rows.items())
    command = folder.command()
    return {
        "job": config.job,
        "data": ", ".join(config.data.files),
        "rows": sizes,
        "scored on": f"{split} split",
        "parameters": f"{sum(p.numel() for p in result.model.parameters()):,}",
        "steps": f"{result.steps:,} of {result.setup.steps:,}, kept {listed(result.kept)}"
        + (f"; then {again.steps:,} on all rows" if again else ""),
        "training time": clock(result.seconds)
        + (f", and {clock(again.seconds)} on all rows" if again else ""),
        **prediction_fact(folder),
        "machine": result.setup.machine.described,
        "seed": config.seed,
        "glassformer": config.version,
        **({"command": command} if command else {}),
    }


def intake_notes(folder: RunFolder, noun: str) -> list[str]:
    """Notes on skipped, added and duplicated rows.

    Args:
        noun: What one sample is called.
    """
    intake = folder.intake()
    # "back_translated" is what earlier versions called it.
    added = intake.get("added", intake.get("back_translated", ()))
    notes = [f"{sentence}." for sentence in added]
    notes += [
        f"Left out: {counted(entry['count'], 'row')} with {reason}, first {entry['first']}."
        for reason, entry in intake.get("skipped", {}).items()
    ]
    notes += [f"{sentence}." for sentence in intake.get("together", ())]
    related = {
        kind: {split: Skipped(**entry) for split, entry in splits.items()}
        for kind, splits in intake.get("related", {}).items()
    }
    notes += [
        f"{line}: a model may know it by heart."
        for line in related_lines(related, intake.get("counts", {}))
    ]
    notes += [
        f"{counted(entry['count'], 'row')} with {what}, first {entry['first']}."
        for what, entry in intake.get("lost", {}).items()
    ]
    return notes + [
        f"{counted(entry['count'], noun)} of the {split} split "
        f"{'is' if entry['count'] == 1 else 'are'} also in the training split, first "
        f"{entry['first']}: scores on {'it' if entry['count'] == 1 else 'them'} are optimistic."
        for split, entry in intake.get("shared", {}).items()
    ]
