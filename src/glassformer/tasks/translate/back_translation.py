"""Back-translation: texts of the target language, with sources that another run writes for them.

What is to be written is real, what is read is made up, and a translator learns to write from it all
the same (Sennrich et al., 2015). It is added to the training split alone, and stays in the run.
"""

import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, cycle, islice

import numpy as np

from glassformer.config.run import Config
from glassformer.data.ingest import Seen
from glassformer.data.samples import SPLITS, Sample, Samples
from glassformer.data.splitter import Skipped
from glassformer.errors import GlassformerError
from glassformer.tasks.extension import Companion, Extended, Extension
from glassformer.tasks.translate.monolingual import lines_to_write, refuse_same_direction
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.tokens import targets_named

AT_A_TIME = 128  # lines that a rehearsal translates before it looks at the clock


@dataclass(slots=True)
class BackTranslated:
    """What was added: rows written by a run, and lines left out, by reason.

    Attributes:
        planned: Whether it only tells what would be added.
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


class BackTranslation(Extension):
    """Adds texts of the target language with sources that a backward run writes."""

    def companions(self, config: Config) -> Mapping[str, str]:
        backward = config.task.backward
        return {} if backward is None else {"backward": backward}

    def extend(
        self,
        config: Config,
        samples: Samples,
        companions: Mapping[str, Companion],
        *,
        seen: Seen,
        limit: float | None = None,
    ) -> Extended:
        if languages := targets_named(samples):
            raise GlassformerError(
                f"task.monolingual is for one target language, but the data name "
                f"{', '.join(sorted(languages))}; leave it out, or train without the column of `to`"
            )
        backward = companions["backward"]
        if not isinstance(backward.task, TranslateTask):
            raise GlassformerError(
                f"{backward.path}: does {backward.job}; name in task.backward a run that "
                f"translates from the target language to the source's"
            )
        refuse_same_direction(backward, samples)
        made = BackTranslated(config.task.monolingual, backward.path, planned=limit is not None)
        lines = lines_to_write(config, samples, made.skip)
        if limit is None:
            grown = extended(samples, written_back(backward, lines, made, seen))
            return Extended(samples=grown, rows=made.rows, sentences=made.sentences())
        rehearsal = Rehearsal(limit)
        grown = extended(samples, rehearsal.written_back(backward, lines, made, seen))
        return Extended(
            samples=grown,
            rows=made.rows,
            sentences=made.sentences(),
            seconds=rehearsal.seconds,
            notes=tuple(rehearsal.notes()),
        )


def written_back(
    backward: Companion, lines: Iterable[tuple[str, str]], made: BackTranslated, seen: Seen
) -> Iterator[Sample]:
    """Pairs of what the backward run writes for each line, and the line."""
    waiting: deque[tuple[str, str]] = deque()

    def texts() -> Iterator[str]:
        for line in lines:
            waiting.append(line)
            yield line[1]

    for found in backward.predict(texts()):
        where, text = waiting.popleft()
        if found.text.strip():
            made.rows += 1
            seen(made.rows)
            yield {"where": where, "source": found.text, "target": text}
        else:
            made.skip("no answer", where)


class Rehearsal:
    """Back-translates for a few seconds; the other lines are given sources that those have.

    So a plan counts as many rows as there will be, of about their length.

    Attributes:
        tried, lines: How many lines were translated, and how many there are.
        seconds: How long the others would take.
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.tried, self.lines, self.seconds = 0, 0, 0.0

    def written_back(
        self,
        backward: Companion,
        lines: Iterable[tuple[str, str]],
        made: BackTranslated,
        seen: Seen,
    ) -> Iterator[Sample]:
        """In the place of the function of that name."""
        rest, sources, spent = iter(lines), [], 0.0
        while spent < self.limit and (some := list(islice(rest, AT_A_TIME))):
            started = time.perf_counter()
            written = list(written_back(backward, some, made, seen))
            spent += time.perf_counter() - started
            self.tried += len(some)
            sources += [str(sample["source"]) for sample in written]
            yield from written
        self.lines = self.tried
        for source, (where, text) in zip(cycle(sources), rest, strict=False):
            self.lines += 1
            made.rows += 1
            seen(made.rows)
            yield {"where": where, "source": source, "target": text}
        self.seconds = spent * (self.lines - self.tried) / max(1, self.tried)

    def notes(self) -> list[str]:
        """What the numbers rest on, where not all lines were translated."""
        if self.tried == self.lines:
            return []
        return [f"Back-translations are estimated from {self.tried:,} of {self.lines:,} lines."]


def extended(samples: Samples, more: Iterable[Sample]) -> Samples:
    """The samples with more of them in the training split, in the place of the old ones."""
    place, new = samples.folder, samples.folder.with_name(f"{samples.folder.name}.new")
    new.mkdir()
    grown = Samples.write(new, (("train", sample) for sample in chain(samples, more)))
    parts = np.full(len(grown), SPLITS.index("train"), dtype=np.uint8)
    parts[: len(samples)] = samples.splits
    Samples.assign(new, parts)
    shutil.rmtree(place)
    new.rename(place)
    return Samples.open(place)
