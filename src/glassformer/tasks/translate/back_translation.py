"""Back-translation: target-language texts, with sources that another run generates for them.

The targets are real and the sources synthetic, and a translator still learns from them (Sennrich et
al., 2015). The pairs are added to the training split only, and are stored in the run.
"""

import shutil
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

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


@dataclass(slots=True)
class BackTranslated:
    """What was added: generated rows, and lines that were skipped, by reason."""

    files: tuple[str, ...]
    by: str
    rows: int = 0
    skipped: dict[str, Skipped] = field(default_factory=dict)

    def skip(self, reason: str, where: str) -> None:
        """Count a skipped line."""
        self.skipped.setdefault(reason, Skipped(0, where)).count += 1

    def sentences(self) -> list[str]:
        """What was done, as text."""
        texts = f"back-translations of {', '.join(self.files)}"
        return [f"{self.rows:,} training rows were added, {texts} by {self.by}"] + [
            f"not back-translated: {entry.count:,} lines with {reason}, first {entry.first}"
            for reason, entry in self.skipped.items()
        ]


class BackTranslation(Extension):
    """Adds target-language texts with sources that a backward run generates."""

    def companions(self, config: Config) -> Mapping[str, str]:
        backward = config.task.backward
        return {} if backward is None else {"backward": backward}

    def extend(
        self, config: Config, samples: Samples, companions: Mapping[str, Companion], seen: Seen
    ) -> Extended:
        if languages := targets_named(samples):
            raise GlassformerError(
                f"task.monolingual needs a single target language, but the data names "
                f"{', '.join(sorted(languages))}; leave it out, or train without the column `to`"
            )
        backward = companions["backward"]
        if not isinstance(backward.task, TranslateTask):
            raise GlassformerError(
                f"{backward.path}: is a run of {backward.job}; set task.backward to a run that "
                f"translates from the target language to the source language"
            )
        refuse_same_direction(backward, samples)
        made = BackTranslated(config.task.monolingual, backward.path)
        lines = lines_to_write(config, samples, made.skip)
        grown = extended(samples, written_back(backward, lines, made, seen))
        return Extended(samples=grown, rows=made.rows, sentences=made.sentences())


def written_back(
    backward: Companion, lines: Iterable[tuple[str, str]], made: BackTranslated, seen: Seen
) -> Iterator[Sample]:
    """Pairs of the backward run's translation of each line, and the line."""
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


def extended(samples: Samples, more: Iterable[Sample]) -> Samples:
    """The samples with additions to the training split, in place of the old ones."""
    place, new = samples.folder, samples.folder.with_name(f"{samples.folder.name}.new")
    new.mkdir()
    grown = Samples.write(new, (("train", sample) for sample in chain(samples, more)))
    parts = np.full(len(grown), SPLITS.index("train"), dtype=np.uint8)
    parts[: len(samples)] = samples.splits
    Samples.assign(new, parts)
    shutil.rmtree(place)
    new.rename(place)
    return Samples.open(place)
