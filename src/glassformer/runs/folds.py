"""Folds: every row is tested once, by a model that has not learned from it.

For data that nobody has split. A row falls into a fold by a hash of what it says, or of its group,
so duplicates fall together and the folds are the same on every machine. All rows are written once,
as a table with a column a fold (`fold-3` is "test" for the rows of the third fold and "train" for
the others), and each fold is an ordinary run over that table; its validation part is held out of
the rest. The answers of all folds, and those of the baseline, are then scored together.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from glassformer.config import DataConfig
from glassformer.data.ingest import open_rows
from glassformer.data.splits import content_key, split_of
from glassformer.errors import GlassformerError
from glassformer.reports import Report, Table, write_report
from glassformer.reports.tables import comparison_table
from glassformer.runs.display import Display
from glassformer.runs.reports import baselines, reporting
from glassformer.runs.run import Run
from glassformer.runs.teaching import answers_on
from glassformer.tasks.classify.answers import ClassAnswers
from glassformer.tasks.classify.sections import classification_sections
from glassformer.tasks.classify.task import ClassifyTask
from glassformer.training.plan import Plan

THEIRS = "n-grams, chosen in each fold"


def column_of(fold: int) -> str:
    """The column that says which rows a fold is tested on; folds count from 1."""
    return f"fold-{fold}"


def fold_of(key: str, folds: int) -> int:
    """The fold of a row, by a hash of its own: validation parts are drawn by another.

    >>> [fold_of(f"film {n}", 3) for n in range(6)]
    [2, 2, 2, 3, 3, 2]
    """
    shares = {str(fold): 1 / folds for fold in range(1, folds)}  # what they leave is the last
    part = split_of(f"fold of {key}", shares, seed=0)
    return folds if part == "train" else int(part)


def rows_with_folds(data: str, group: str | None, folds: int) -> str:
    """All rows of a set of texts and labels, with a column a fold, a line of JSON each."""
    rows, columns = open_rows(data, DataConfig(group=group), ClassifyTask.roles, "train")
    written = []
    for row in rows:
        if "split" in columns and row[columns["split"]]:
            raise GlassformerError(
                f"{row.where}: has a split of its own, {row[columns['split']]!r}; folds are for "
                f"data that nobody has split"
            )
        values = {role: row[column] for role, column in columns.items() if role != "split"}
        mine = fold_of(values.get("group") or content_key(values["text"]), folds)
        for fold in range(1, folds + 1):
            values[column_of(fold)] = "test" if fold == mine else "train"
        written.append(json.dumps(values, ensure_ascii=False))
    return "\n".join(written) + "\n"


@dataclass(frozen=True, slots=True)
class Fold:
    """What the model of a fold says about its test rows, and what the baseline says.

    Attributes:
        theirs: None where scikit-learn is not installed.
    """

    job: ClassifyTask
    texts: list[str]
    ours: ClassAnswers
    theirs: ClassAnswers | None
    notes: list[str]


def answers_of(run: Run) -> Fold:
    """Ask the model of a finished fold, and train its baseline, on the rows of the fold."""
    config, folder = run.config, run.folder
    job = folder.job(config, folder.data)
    if not isinstance(job, ClassifyTask) or job.samples is None:
        raise GlassformerError(f"{folder.path}: does {config.job}; folds are for classify")
    plan = Plan(config.train, config.data, run.machine, config.seed)
    ours = answers_on(job, run.model, plan, "test")
    notes: list[str] = []
    _, theirs = baselines.ngram_baseline(job, "test", notes)
    return Fold(job, job.samples.texts("test"), ours, theirs, notes)


def pool(runs: Sequence[Run], target: Path, command: str, display: Display) -> Report:
    """Score the folds together, and write report.json and .html into the folder around them."""
    with display.waiting("scoring all folds together"):
        folds = [answers_of(run) for run in runs]
    job, ours = folds[0].job, together([fold.ours for fold in folds])
    theirs = together([fold.theirs for fold in folds if fold.theirs is not None])
    names = job.labels.names
    texts = [text for fold in folds for text in fold.texts]
    assert ours is not None
    sections = classification_sections(ours.labels, ours.probabilities(), names, texts)
    scores, tables = {reporting.OURS: job.scores(ours)}, [*sections.tables, by_fold(folds)]
    notes = [
        f"Each of {len(texts):,} rows is scored by the one model of {len(folds)} that has not "
        f"learned from it; the intervals tell of other rows, not of other training.",
        *dict.fromkeys(note for fold in folds for note in fold.notes),
    ]
    if theirs is not None:
        scores[THEIRS] = job.scores(theirs)
        comparison = job.compare(ours, theirs)
        notes.insert(0, reporting.verdict(comparison[job.goal], len(texts), job.goal))
        tables.append(comparison_table(comparison, reporting.OURS, THEIRS))
    report = Report(
        title=target.name,
        facts={
            "job": job.name,
            "rows": f"{len(texts):,}",
            "folds": len(folds),
            "scored on": "test parts of all folds",
            "machine": runs[0].machine.described,
            "seed": runs[0].config.seed,
            "command": command,
        },
        scores=scores,
        tables=tables,
        heat_map=sections.heat_map,
        reliability=sections.reliability,
        notes=notes,
    )
    write_report(report, target)
    return report


def together(answers: Sequence[ClassAnswers]) -> ClassAnswers | None:
    """The answers of all folds, one after the other."""
    if not answers:
        return None
    return ClassAnswers(
        np.concatenate([some.logits for some in answers]),
        np.concatenate([some.labels for some in answers]),
    )


def by_fold(folds: Sequence[Fold]) -> Table:
    """How the folds differ."""
    return Table(
        title="By fold",
        header=("fold", "rows", "accuracy", "baseline"),
        rows=[
            (
                number,
                len(fold.texts),
                fold.ours.accuracy(),
                None if fold.theirs is None else fold.theirs.accuracy(),
            )
            for number, fold in enumerate(folds, start=1)
        ],
    )
