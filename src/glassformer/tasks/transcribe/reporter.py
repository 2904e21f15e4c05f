"""The report of a transcriber: scores, confused words, the worst rows, and a baseline."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from glassformer.data.audio.clip import read_clip
from glassformer.data.samples import Sample
from glassformer.metrics.units import pooled
from glassformer.reports import Sections, Sound, Table
from glassformer.reports.record import SOME_ROWS
from glassformer.reports.tables import evenly, excerpt
from glassformer.tasks.reporter import Baseline, PoolingReporter
from glassformer.tasks.shared.nearest import NearestRecordings, StoredNearest
from glassformer.tasks.shared.recordings import Part
from glassformer.tasks.transcribe.answers import NOTHING, Transcripts
from glassformer.tasks.transcribe.language_model import (
    choose_weights,
    chosen,
    open_fusion,
    share_of,
)
from glassformer.tasks.transcribe.task import TranscribeTask
from glassformer.wording import counted

WORST = 10
CONFUSED = 20
MOST_ROWS, FEW_ROWS = 20_000, 500  # training recordings that the baseline stores: at most, always
SECONDS_A_ROW = 2e-4  # of the baseline, about


class TranscribeReporter(PoolingReporter[TranscribeTask, Transcripts]):
    """For recordings of speech."""

    score_names = ("wer", "cer", "exact")

    def __init__(self, task: TranscribeTask) -> None:
        super().__init__(task)
        settings = task.settings
        self.calibrates = settings.lm is None and settings.decode.method == "beam"

    def pool(self, answers: Sequence[Transcripts]) -> Transcripts:
        return Transcripts(
            [text for some in answers for text in some.written],
            [text for some in answers for text in some.right],
            answers[0].measure,
            heard=sum(some.heard for some in answers),
            spent=sum(some.spent for some in answers),
            units=pooled(some.units for some in answers),
        )

    def calibrate(self, answers: Transcripts) -> None:
        """Choose the weights of the search."""
        task, searcher = self.task, self.task.searcher
        if any(answers.choices):  # otherwise they were chosen before
            joint = searcher.search == "joint"
            choose_weights(answers, task.folder, searcher.share, joint=joint)
            fusion = open_fusion(task.folder, task.settings)
            share = share_of(task.folder, task.settings)
            task.searcher = replace(searcher, weight=share, fusion=fusion)

    def remarks(self) -> list[str]:
        return [] if self.task.samples is None else self.task.remarks

    def notes(self, answers: Transcripts) -> list[str]:
        """The errors by kind, the weights of the search, and the speed."""
        edits, unit = answers.edits, answers.measure
        deleted = sum(count for (_, written), count in edits.items() if written == NOTHING)
        inserted = sum(count for (right, _), count in edits.items() if right == NOTHING)
        replaced = edits.total() - deleted - inserted
        total = sum(len(answers.split_up(text)) for text in answers.right)
        return [
            f"{counted(edits.total(), 'error')} in {total:,} {unit}: {replaced:,} substitutions, "
            f"{deleted:,} deletions, {inserted:,} insertions",
            *weights_note(self.task.folder),
            *speed_note(answers),
        ]

    def sections(self, answers: Transcripts, samples: Sequence[Sample]) -> Sections:
        names = [Path(sample["path"]).name for sample in samples]
        worst = worst_rows(answers, names, samples)
        return Sections(tables=[some_rows(answers, names), worst, confused(answers)])

    def baseline(self, split: str) -> Baseline[Transcripts]:
        """The transcript of the nearest training recording."""
        task, samples = self.task, self.task.samples
        assert samples is not None
        readable = max(FEW_ROWS, int(min(self.seconds / SECONDS_A_ROW, MOST_ROWS)))
        known = samples.rows("train")[:readable].tolist()
        numbers = samples.rows(split).tolist()
        texts = [task.normalise(samples[row]["text"]) for row in known]
        memory = NearestRecordings.of(map(self._sound, known))
        right = [task.normalise(samples[row]["text"]) for row in numbers]
        written = [texts[row] for row in memory(map(self._sound, numbers))[:, 0]]
        answers = Transcripts(written, right, task.settings.measure)
        save = StoredNearest(memory, texts).save
        left_out = len(known) < min(MOST_ROWS, len(samples.rows("train")))
        notes = [
            f"The baseline knows {len(known):,} recordings: more take longer than the time "
            f"budget leaves."
        ]
        kept = notes if left_out else []
        return Baseline("nearest recording", "by mean features", answers, kept, save)

    def baseline_seconds(self) -> float:
        """Every recording is read once; comparing them takes little."""
        if self.task.samples is None:
            return 0.0
        return 1.0 + SECONDS_A_ROW * len(self.task.samples)

    def _sound(self, row: int) -> np.ndarray:
        return self.task.sounds[row]


def weights_note(folder: Path) -> list[str]:
    """What the weights changed on the validation rows."""
    found = chosen(folder)
    if not found:
        return []
    return [
        f"chosen on the validation rows: weight {found['weight']:g} for the n-gram model of the "
        f"transcripts, share {found['share']:g} for CTC; {found['errors']:,} errors there, "
        f"{found['errors_before']:,} before"
    ]


def speed_note(answers: Transcripts) -> list[str]:
    """How long it took to write down a second of sound."""
    if not answers.spent:
        return []
    factor = answers.spent / answers.heard
    return [
        f"real-time factor {factor:.2g}: {answers.heard:,.0f} s of sound were encoded and searched "
        f"{1 / factor:,.1f} times as fast as they last"
    ]


def some_rows(answers: Transcripts, names: Sequence[str]) -> Table:
    """Evenly spaced rows."""
    return Table(
        title=SOME_ROWS,
        header=("recording", "transcript", "written"),
        rows=[shown(answers, names, row) for row in evenly(len(names))],
    )


def worst_rows(answers: Transcripts, names: Sequence[str], samples: Sequence[Sample]) -> Table:
    """The rows with the most errors for their length, where bad transcripts are often found.

    They can be listened to.
    """
    one = answers.measured["cer"]
    rates = one.row_statistic(one.rows)
    wrong = answers.measured["exact"].rows[:, 0] == 0
    order = [row for row in np.argsort(-rates, kind="stable").tolist() if wrong[row]][:WORST]
    return Table(
        title="The worst rows",
        header=("listen", "recording", "transcript", "written", "cer"),
        rows=[
            (playable(samples[row]), *shown(answers, names, row), float(rates[row]))
            for row in order
        ],
        note=f"{len(order)} of {int(wrong.sum()):,} that are not exact."
        if order
        else "Every transcript is exact.",
    )


def confused(answers: Transcripts) -> Table:
    """The most frequent errors."""
    return Table(
        title=f"Most confused {answers.measure}",
        header=("right", "written", "times"),
        rows=[(*pair, count) for pair, count in answers.edits.most_common(CONFUSED)],
        note=f"{NOTHING}: nothing.",
    )


def playable(sample: Sample) -> Sound | None:
    """The recording of a sample, or its beginning; None if it cannot be played."""
    part = Part.of(sample)
    clip = read_clip(part.path, start=part.start, end=part.end)
    return None if clip is None else Sound(clip)


def shown(answers: Transcripts, names: Sequence[str], row: int) -> tuple[str, str, str]:
    """A row for a table."""
    return names[row], excerpt(answers.right[row]), excerpt(answers.written[row])
