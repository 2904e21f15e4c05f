"""The report at the end: how good a run is, beside an honest baseline on the same rows."""

from glassformer.metrics.paired import Comparison
from glassformer.metrics.score import Score
from glassformer.metrics.styles import style_of
from glassformer.reports import Report, write_report
from glassformer.reports.tables import comparison_table
from glassformer.reports.wording import chance, gap
from glassformer.runs.display import Display, clock
from glassformer.runs.folder import RunFolder
from glassformer.runs.foresight.prediction import prediction_fact
from glassformer.runs.log import curves, troubles
from glassformer.runs.pretraining import decision_note
from glassformer.runs.reports.curve import Curve
from glassformer.runs.reports.reporters import reporter_of
from glassformer.runs.teaching import Taught, answers_on

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
    reporter = reporter_of(job.name)
    notes = [*intake_notes(folder), *decision_note(folder), *troubles(folder.metrics)]
    notes += [f"{remark}." for remark in job.remarks()]
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
        sections = reporter.sections(job, answers, part)
        notes += reporter.notes(answers)
        with display.waiting("training the baseline"):
            name, theirs = reporter.baseline(job, part, notes)
        if theirs is not None:
            scores[name] = job.scores(theirs)
            comparison = job.compare(answers, theirs)
            notes.insert(0, verdict(comparison[job.goal], len(job.lengths(part)), job.goal))
            tables.append(comparison_table(comparison, OURS, name))
            tables += reporter.beside(job, answers, theirs, part)
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


def verdict(found: Comparison, rows: int, goal: str) -> str:
    """What the comparison with the baseline comes to by one score, in a sentence."""
    luck, difference = f"({chance(found.p_value)})", found.difference.value
    if found.p_value > CHANCE:
        return f"On {rows:,} rows it cannot be told apart from the baseline {luck}."
    better = "better" if (difference > 0) == style_of(goal).higher_is_better else "worse"
    return f"On {rows:,} rows it is {better} than the baseline by {gap(goal, difference)} {luck}."


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
    """What was left out of the data, what was added to them, and what is there twice."""
    intake = folder.intake()
    notes = [f"{sentence}." for sentence in intake.get("back_translated", ())]
    notes += [
        f"Left out: {entry['count']:,} rows with {reason}, the first is {entry['first']}."
        for reason, entry in intake.get("skipped", {}).items()
    ]
    return notes + [
        f"{entry['count']:,} texts of the {part} part are also in the training part, the first is "
        f"{entry['first']}: scores on it flatter."
        for part, entry in intake.get("shared", {}).items()
    ]


def baseline_seconds(folder: RunFolder) -> float:
    """About how long the baseline will take."""
    config = folder.config()
    return reporter_of(config.job).baseline_seconds(folder.job(config, folder.data))
