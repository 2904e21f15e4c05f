"""Cross-validation: every row is tested once, by a model that was not trained on it.

For data without a split. A row is assigned to a fold by a hash of its content, or of its group, so
duplicates stay together and the folds are the same on every machine. All rows are written once, as
a table with one column per fold (`fold-3` is "test" for the rows of the third fold and "train" for
the others), and each fold is an ordinary run over that table; its validation split is held out of
the rest. The answers of all folds, and those of the baseline, are then scored together.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from glassformer.config import DataConfig
from glassformer.data.ingest import open_rows
from glassformer.data.samples import Sample
from glassformer.data.splits import split_of
from glassformer.errors import GlassformerError
from glassformer.reports import Report, Table, write_report
from glassformer.reports.tables import comparison_table
from glassformer.reports.wording import interval_notes
from glassformer.runs.display import Display
from glassformer.runs.fit import answers_on
from glassformer.runs.folder import reporter_of
from glassformer.runs.report import OURS, baseline_of
from glassformer.runs.run import Run
from glassformer.runs.verdict import judgement
from glassformer.tasks import JOBS
from glassformer.tasks.reporter import Baseline, PoolingReporter, Rival
from glassformer.training.setup import TrainSetup


def column_of(fold: int) -> str:
    """The column that says which rows a fold is tested on; folds count from 1."""
    return f"fold-{fold}"


def fold_of(key: str, folds: int) -> int:
    """The fold of a row, by a hash that is independent of the validation split.

    >>> [fold_of(f"film {n}", 3) for n in range(6)]
    [2, 2, 2, 3, 3, 2]
    """
    shares = {str(fold): 1 / folds for fold in range(1, folds)}  # what they leave is the last
    split = split_of(f"fold of {key}", shares, seed=0)
    return folds if split == "train" else int(split)


def rows_with_folds(job: str, data: str, group: str | None, folds: int) -> str:
    """All rows of a data set as JSON Lines, with one column per fold."""
    schema, config = JOBS[job].schema, DataConfig(group=group)
    rows, columns, *_ = open_rows(data, config, schema, "train")
    written = []
    for row in rows:
        if "split" in columns and row[columns["split"]]:
            raise GlassformerError(
                f"{row.where}: has a split of its own, {row[columns['split']]!r}; folds are for "
                f"data without a split"
            )
        sample, fault = schema.sample(row, columns)
        values = {
            role: sample.get(role, row[column])  # a sample tells where its files are
            for role, column in columns.items()
            if role != "split"
        }
        content = row.where if fault else schema.content(sample, config)  # it is left out later
        mine = fold_of(values.get("group") or content, folds)
        for fold in range(1, folds + 1):
            values[column_of(fold)] = "test" if fold == mine else "train"
        written.append(json.dumps(values, ensure_ascii=False))
    return "\n".join(written) + "\n"


@dataclass(frozen=True, slots=True)
class Fold:
    """Answers of a fold's model and of its baseline for the test rows."""

    reporter: PoolingReporter[Any, Any]
    samples: list[Sample]
    ours: Any
    rivals: list[Rival[Any]]
    baseline: Baseline[Any] | None
    notes: list[str]

    def goal(self, answers: Any) -> float:
        """The main score of some answers to these rows."""
        return self.reporter.scores(answers)[self.reporter.task.goal].value


def answers_of(run: Run) -> Fold:
    """Evaluate the model of a finished fold and its baseline on the test rows."""
    config, folder = run.config, run.folder
    task = folder.open_task(config, folder.data)
    reporter = reporter_of(task)
    if not isinstance(reporter, PoolingReporter) or task.samples is None:
        raise GlassformerError(f"{folder.path}: {config.job} cannot be cross-validated")
    setup = TrainSetup(config.train, config.data, run.machine, config.seed)
    ours = task.combine(answers_on(task, run.model, setup, "test"), "test")
    rivals = [
        replace(rival, answers=task.sampled(rival.answers, "test"))
        for rival in reporter.rivals(ours, "test")
    ]
    samples = list(task.samples.of("test"))
    return Fold(reporter, samples, ours, rivals, *baseline_of(reporter, "test"))


def pool(runs: Sequence[Run], target: Path, command: str, display: Display) -> Report:
    """Score all folds together, and write the report into their parent folder."""
    with display.waiting("scoring all folds together"):
        folds = [answers_of(run) for run in runs]
    reporter, ours = folds[0].reporter, folds[0].reporter.pool([fold.ours for fold in folds])
    samples = [sample for fold in folds for sample in fold.samples]
    sections = reporter.sections(ours, samples)
    scores, tables = {OURS: reporter.scores(ours)}, [*sections.tables, by_fold(folds)]
    notes = [
        f"Each of {len(samples):,} rows is scored by the one model of {len(folds)} that was not "
        f"trained on it; the intervals cover the choice of rows, not of training runs.",
        *reporter.notes(ours),
        *interval_notes({OURS: scores[OURS]}, reporter.units(ours)),
        *dict.fromkeys(note for fold in folds for note in fold.notes),
    ]
    rivals = [
        replace(same[0], answers=reporter.pool([rival.answers for rival in same]))
        for same in zip(*(fold.rivals for fold in folds), strict=True)
    ]
    baselines = [fold.baseline for fold in folds if fold.baseline is not None]
    instead = None
    if len(baselines) == len(folds):
        theirs = reporter.pool([one.answers for one in baselines])
        name = f"{baselines[0].kind}, one per fold"
        rivals.insert(0, Rival(baselines[0].kind, name, theirs, is_baseline=True))
        tables.append(comparison_table(reporter.compare(ours, theirs), OURS, name))
        same_system = {one.is_model for one in baselines}
        instead = same_system.pop() if len(same_system) == 1 else None
    for rival in rivals:
        scores[rival.name] = reporter.scores(rival.answers)
    if len(baselines) == len(folds):
        for part, alone in pooled_parts(folds).items():
            scores[part] = reporter.scores(alone)
            tables.append(comparison_table(reporter.compare(ours, alone), OURS, part))
            tables += reporter.part_tables(ours, {part: alone}, theirs, samples)
    report = Report(
        title=target.name,
        facts={
            "job": runs[0].config.job,
            "rows": f"{len(samples):,}",
            "folds": len(folds),
            "scored on": "test splits of all folds",
            "machine": runs[0].machine.described,
            "seed": runs[0].config.seed,
            "command": command,
        },
        scores=scores,
        baseline=next((rival.name for rival in rivals if rival.is_baseline), None),
        tables=tables,
        heat_map=sections.heat_map,
        reliability=sections.reliability,
        verdict=judgement(reporter, ours, rivals, scores, instead),
        notes=notes,
    )
    write_report(report, target)
    return report


def pooled_parts(folds: Sequence[Fold]) -> dict[str, Any]:
    """The answers of each part of the models alone; a model without it answers as a whole."""
    found = [fold.reporter.parts(fold.ours) for fold in folds]
    return {
        name: folds[0].reporter.pool(
            [parts.get(name, fold.ours) for parts, fold in zip(found, folds, strict=True)]
        )
        for name in dict.fromkeys(name for parts in found for name in parts)
    }


def by_fold(folds: Sequence[Fold]) -> Table:
    """The scores by fold."""
    return Table(
        title="By fold",
        header=("fold", "rows", folds[0].reporter.task.goal, "baseline"),
        rows=[
            (
                number,
                len(fold.samples),
                fold.goal(fold.ours),
                None if fold.baseline is None else fold.goal(fold.baseline.answers),
            )
            for number, fold in enumerate(folds, start=1)
        ],
    )
