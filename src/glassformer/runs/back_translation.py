"""Back-translation: texts of the target language, with sources that another run writes for them.

What is to be written is real, what is read is made up, and a translator learns to write from it all
the same (Sennrich et al., 2015). It is added to the training part alone, and stays in the run.
"""

import math
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from glassformer.config import DataConfig
from glassformer.config.run import Config
from glassformer.data.ingest import Seen, open_rows
from glassformer.data.jagged import Jagged
from glassformer.data.rows import Row
from glassformer.data.samples import SPLITS, Sample, Samples
from glassformer.data.splits import content_key
from glassformer.data.splitter import IngestReport, Skipped
from glassformer.errors import GlassformerError
from glassformer.runs.display import Display
from glassformer.runs.run import Run
from glassformer.tasks.shared.text_data import TextSchema
from glassformer.tasks.translate.batch import pair_batch, right_answers
from glassformer.tasks.translate.checks.languages import LEARNED, like_the_sources
from glassformer.tasks.translate.settings import TranslateConfig
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.tokens import targets_named

TEXTS = TextSchema()
LOOKED_AT, TOGETHER = 100, 16  # pairs that tell the direction of a run, and at a time
COMPARED = 200  # lines of a file whose language is looked at
CLEARLY = 0.9  # times the loss of one direction is less than that of the other


@dataclass(slots=True)
class BackTranslated:
    """What was added: rows written by a run, and lines left out, by reason.

    Attributes:
        planned: Whether it is only said what would be added.
    """

    files: tuple[str, ...]
    by: str
    rows: int = 0
    planned: bool = False
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def skip(self, reason: str, where: str) -> None:
        """Leave a line out."""
        self.skipped.setdefault(reason, Skipped(0, where)).count += 1

    def sentences(self) -> list[str]:
        """What was done, for a person."""
        texts = f"back-translations of {', '.join(self.files)}"
        were = "would be" if self.planned else "were"
        return [f"{self.rows:,} training rows {were} added, {texts} by {self.by}"] + [
            f"not back-translated: {entry.count:,} lines with {reason}, first {entry.first}"
            for reason, entry in self.skipped.items()
        ]


WriteBack = Callable[[Run, Iterable[tuple[str, str]], BackTranslated, Seen], Iterator[Sample]]


def add_back_translations(
    config: Config, samples: Samples, taken: IngestReport, display: Display, write_back: WriteBack
) -> tuple[Samples, list[str]]:
    """The samples, with back-translations in the training part where they are asked for.

    Returns what was done in sentences, too; what was taken in grows by it.
    """
    task = config.task
    if not isinstance(task, TranslateConfig) or task.backward is None:
        return samples, []
    if languages := targets_named(samples):
        raise GlassformerError(
            f"task.monolingual is for one target language, but the data name "
            f"{', '.join(sorted(languages))}; leave it out, or train without the column of `to`"
        )
    run = Run(task.backward, device=config.machine.device)
    if run.config.job != "translate":
        raise GlassformerError(
            f"{task.backward}: does {run.config.job}; name in task.backward a run that translates "
            f"from the target language to the source's"
        )
    refuse_same_direction(run, samples)
    made = BackTranslated(task.monolingual, task.backward)
    with display.counting("back-translating") as seen:
        lines = lines_to_write(config, samples, made)
        samples = extended(samples, write_back(run, lines, made, seen))
    taken.counts["train"] += made.rows
    for sentence in made.sentences():
        display.say(sentence)
    return samples, made.sentences()


def refuse_same_direction(run: Run, samples: Samples) -> None:
    """Refuse a run that foretells the targets from the sources clearly better than the reverse."""
    some = list(islice(samples.of("train"), LOOKED_AT))
    job = run.job
    assert isinstance(job, TranslateTask)
    if not some or job.pair.tags:  # one of several languages refuses texts without a tag
        return
    sources, targets = ([str(sample[side]) for sample in some] for side in ("source", "target"))
    if surprise(run, job, sources, targets) < CLEARLY * surprise(run, job, targets, sources):
        raise GlassformerError(
            f"{run.folder.path}: translates from the source's language; name in task.backward a "
            f"run that translates from the target language to the source's"
        )


@torch.no_grad()
def surprise(run: Run, job: TranslateTask, asked: Sequence[str], meant: Sequence[str]) -> float:
    """The loss of a translator in nats a token of what is meant.

    A token that it does not know, as most of another language, costs as much as a guess.
    """
    found: list[Tensor] = []
    for start in range(0, len(asked), TOGETHER):
        reads, writes = (
            Jagged.of(
                [ids[: job.settings.max_length] for ids in tokens.encode(texts[start:][:TOGETHER])]
            )
            for tokens, texts in ((job.pair.source, asked), (job.pair.target, meant))
        )
        rows = np.arange(len(reads.lengths))
        batch = pair_batch(job.pair.read(reads, None), writes, rows, packed=True)
        batch = batch.to(run.machine.device)
        with run.machine.autocast():
            said = job.forward(run.model, batch)
        losses = F.cross_entropy(said, batch.truth, reduction="none")
        unknown = batch.truth == job.pair.target.unknown
        found.append(losses.masked_fill(unknown, math.log(said.shape[-1])))
    return float(torch.cat(found).mean())


def lines_to_write(
    config: Config, samples: Samples, made: BackTranslated
) -> Iterator[tuple[str, str]]:
    """Where each line stands, and the line; what is held out to be scored on is left out."""
    held_out = {
        content_key(target)
        for part in ("valid", "test")
        for sample in samples.of(part)
        for target in right_answers(sample)
    }
    step = 1 + len(samples.rows("train")) // LEARNED
    pairs = [(one["source"], one["target"]) for one in islice(samples.of("train"), 0, None, step)]
    opened = [open_texts(name, config, pairs) for name in made.files]
    for row, text in chain.from_iterable(opened):
        if not text:
            made.skip("no text", row.where)
        elif content_key(text) in held_out:
            made.skip("a target that is held out", row.where)
        else:
            yield row.where, text


def open_texts(
    name: str, config: Config, pairs: Sequence[tuple[str, str]]
) -> Iterator[tuple[Row, str]]:
    """The rows of a file and their texts; refused where they are like the sources of some pairs."""
    settings = DataConfig(encoding=config.data.encoding)
    rows, columns = open_rows(name, settings, TEXTS, "train")
    texts = ((row, str(row[columns["text"]]).strip()) for row in rows)
    head = list(islice(texts, COMPARED))
    if like_the_sources([text for _, text in head], pairs):
        raise GlassformerError(
            f"{name}: its lines are more like the sources than the targets; name texts of the "
            f"target language in task.monolingual"
        )
    return chain(head, texts)


def written_back(
    run: Run, lines: Iterable[tuple[str, str]], made: BackTranslated, seen: Seen
) -> Iterator[Sample]:
    """Pairs of what the run writes for each line, and the line."""
    asked: deque[tuple[str, str]] = deque()

    def texts() -> Iterator[str]:
        for line in lines:
            asked.append(line)
            yield line[1]

    for found in run.predict_each(texts()):
        where, text = asked.popleft()
        if found.text.strip():
            made.rows += 1
            seen(made.rows)
            yield {"where": where, "source": found.text, "target": text}
        else:
            made.skip("no answer", where)


def extended(samples: Samples, more: Iterable[Sample]) -> Samples:
    """The samples with more of them in the training part, in the place of the old ones."""
    place, new = samples.folder, samples.folder.with_name(f"{samples.folder.name}.new")
    new.mkdir()
    grown = Samples.write(new, (("train", sample) for sample in chain(samples, more)))
    parts = np.full(len(grown), SPLITS.index("train"), dtype=np.uint8)
    parts[: len(samples)] = samples.splits
    Samples.assign(new, parts)
    shutil.rmtree(place)
    new.rename(place)
    return Samples.open(place)
