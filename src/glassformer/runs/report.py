"""The final report: scores of a run beside an honest baseline on the same rows."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glassformer import processes
from glassformer.data.splitter import Skipped, related_lines
from glassformer.errors import GlassformerError
from glassformer.metrics.intervals import Score
from glassformer.metrics.paired import Comparison
from glassformer.metrics.styles import style_of
from glassformer.reports import Report, Sections, Table, write_report
from glassformer.reports.tables import comparison_table
from glassformer.reports.wording import BASELINE_WINS, chance, gap
from glassformer.runs.display import Display, clock
from glassformer.runs.fit import FitResult, answers_on, listed
from glassformer.runs.folder import RunFolder, reporter_of
from glassformer.runs.forecast import prediction_fact
from glassformer.runs.learning_curve import Curve
from glassformer.runs.log import curves, troubles
from glassformer.runs.pretraining import decision_note
from glassformer.runs.settings import unused_reasons
from glassformer.runs.timing import Budget
from glassformer.tasks import JOBS
from glassformer.tasks.job import AnyTask
from glassformer.tasks.reporter import Baseline, Reporter
from glassformer.training.loader import sample_rows
from glassformer.wording import counted

OURS = "this model"
CHANCE = 0.05  # differences with a larger p-value do not count
TIED = "is not significantly different from the baseline"
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
        curves=curves(folder.metrics) | second_curves(folder.second_metrics),
        tables=[*found.sections.tables, *found.tables],
        heat_map=found.sections.heat_map,
        reliability=found.sections.reliability,
        notes=[*found.verdict, *notes, *found.notes],
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
        notes=[*reporter.decisions(), *reporter.notes(answers)],
    )
    baseline: Baseline[Any] | None = None
    if result.config.baseline:
        with display.waiting("training the baseline"):
            baseline, remarks = baseline_of(reporter, split)
        found.notes += remarks
    if baseline is not None:
        if baseline.save is not None:
            baseline.save(task.folder)
        found.scores[baseline.name] = reporter.scores(baseline.answers)
        table, sentence = compared(reporter, answers, baseline.answers, baseline.name)
        tables = reporter.baseline_tables(answers, baseline.answers, samples)
        found.tables, found.verdict = [table, *tables], [baseline.is_model or sentence]
        parts = reporter.parts(answers)
        add_parts(found, reporter, answers, parts)
        found.tables += reporter.part_tables(answers, parts, baseline.answers, samples)
        score, kept = found.scores[OURS][task.goal].value, baseline.save is not None
        room = has_room(task.goal, score)
        sized = "model" not in unused_reasons(task.config)
        folder = RunFolder(task.folder)
        found.verdict += what_next(sentence, folder, kept=kept, room=room, sized=sized)
    return found


def add_parts(
    found: Findings, reporter: Reporter[Any, Any], answers: Any, parts: Mapping[str, Any]
) -> None:
    """The scores of parts of the model by themselves, and what the whole gains over each."""
    for name, part in parts.items():
        found.scores[name] = reporter.scores(part)
        found.tables.append(comparison_table(reporter.compare(answers, part), OURS, name))


def what_next(
    sentence: str, folder: RunFolder, *, kept: bool, room: bool, sized: bool = True
) -> list[str]:
    """What to do where the model is not better than the baseline.

    Args:
        sentence: The verdict.
        kept: Whether the run keeps the baseline.
        room: Whether the score can still get better.
        sized: Whether the model has a size to choose.
    """
    tied = TIED in sentence
    run = shlex.quote(str(folder.path))
    use = f"use it with `glassformer predict {run} --baseline`, or try" if kept else "try"
    if " worse than the baseline " in sentence or (tied and "(worse by" in sentence):
        surely = ", if not surely" if tied else ""
        return [f"{BASELINE_WINS}{surely}: {use} {other_choices(folder, sized=sized)}."]
    return [f"To do better, try {other_choices(folder, sized=sized)}."] if tied and room else []


def other_choices(folder: RunFolder, *, sized: bool) -> str:
    """What may help a model that is no better than the baseline."""
    pretrained = ", --no-pretrain" if folder.pretrain.path.exists() else ""
    size = "another --size, " if sized else ""
    return f"more rows (--curve tells whether they would help), {size}a longer --time{pretrained}"


def has_room(goal: str, value: float) -> bool:
    """Whether a score can still get better.

    >>> has_room("accuracy", 1.0), has_room("bleu", 41.0), has_room("wer", 0.0)
    (False, True, False)
    """
    return value != (1.0 if style_of(goal).higher_is_better else 0.0)


def baseline_of(reporter: Reporter[Any, Any], split: str) -> tuple[Baseline[Any] | None, list[str]]:
    """The baseline of a job, if there is one, and notes on it."""
    try:
        found = reporter.baseline(split)
    except GlassformerError as error:  # such as a library that is not installed
        return None, [f"No baseline: {error}"]
    return found, list(found.notes) if found else []


def compared(reporter: Reporter[Any, Any], ours: Any, theirs: Any, name: str) -> tuple[Table, str]:
    """The model beside a baseline: every score in a table, and the goal in a sentence."""
    comparison, goal = reporter.compare(ours, theirs), reporter.task.goal
    sentence = verdict(comparison[goal], goal, reporter.compared_unit)
    return comparison_table(comparison, OURS, name), sentence


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


def verdict(found: Comparison, goal: str, unit: str = "row") -> str:
    """The comparison with the baseline in one score, as a sentence; `unit` is what was compared."""
    luck, difference = chance(found.p_value), found.difference.value
    scored = counted(found.rows, unit)
    better = "better" if (difference > 0) == style_of(goal).higher_is_better else "worse"
    apart = f"{better} by {gap(goal, difference)}, " if difference else ""
    if found.p_value > CHANCE:
        return f"On {scored} it {TIED} ({apart}{luck})."
    return f"On {scored} it is {better} than the baseline by {gap(goal, difference)} ({luck})."


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
