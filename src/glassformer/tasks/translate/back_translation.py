"""Back-translation: target-language texts, with sources that another run generates for them.

The targets are real and the sources synthetic, and a translator still learns from them (Sennrich et
al., 2015). The pairs are added to the training split only, and are stored in the run.
"""

import math
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from glassformer.data.samples import SPLITS, Sample, Samples
from glassformer.data.splits import content_key
from glassformer.data.splitter import Skipped
from glassformer.errors import GlassformerError
from glassformer.tasks.extension import Companion, Extended, Extension
from glassformer.tasks.shared.text_data import TextSchema
from glassformer.tasks.translate.batch import pair_batch, right_answers
from glassformer.tasks.translate.task import TranslateTask
from glassformer.tasks.translate.tokens import targets_named

TEXTS = TextSchema()
LOOKED_AT, TOGETHER = 100, 16  # pairs that show the direction of a run, and pairs per batch
CLEARLY = 0.9  # a loss below this share of the other direction's is clearly lower


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
        if found.text and found.text.strip():
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


def refuse_same_direction(backward: Companion, samples: Samples) -> None:
    """Refuse a run that predicts the targets from the sources clearly better than the reverse."""
    some = list(islice(samples.of("train"), LOOKED_AT))
    if not some or backward.task.pair.tags:  # several languages need a tag
        return
    sources, targets = ([str(sample[side]) for sample in some] for side in ("source", "target"))
    if nll(backward, sources, targets) < CLEARLY * nll(backward, targets, sources):
        raise GlassformerError(
            f"{backward.path}: translates from the source language; set task.backward to a "
            f"run that translates from the target language to the source language"
        )


@torch.no_grad()
def nll(companion: Companion, sources: Sequence[str], targets: Sequence[str]) -> float:
    """The loss of a translator, in nats per target token.

    An unknown token, as most are in another language, costs as much as a uniform guess.
    """
    task, found = companion.task, list[Tensor]()
    device = next(companion.model.parameters()).device
    for start in range(0, len(sources), TOGETHER):
        reads, writes = (
            Jagged.of(
                [ids[: task.settings.max_length] for ids in tokens.encode(texts[start:][:TOGETHER])]
            )
            for tokens, texts in ((task.pair.source, sources), (task.pair.target, targets))
        )
        rows = np.arange(len(reads.lengths))
        batch = pair_batch(task.pair.read(reads, None), writes, rows, packed=True)
        batch = batch.to(device)
        logits = task.forward(companion.model, batch).float()
        losses = F.cross_entropy(logits, batch.labels, reduction="none")
        unknown = batch.labels == task.pair.target.unknown
        found.append(losses.masked_fill(unknown, math.log(logits.shape[-1])))
    return float(torch.cat(found).mean())


def lines_to_write(
    config: Config, samples: Samples, skip: Callable[[str, str], None]
) -> Iterator[tuple[str, str]]:
    """The location of each line, and the line; targets of valid and test are left out."""
    held_out = {
        content_key(target)
        for split in ("valid", "test")
        for sample in samples.of(split)
        for target in right_answers(sample)
    }
    settings = DataConfig(header=config.data.header, encoding=config.data.encoding)
    opened = [open_rows(name, settings, TEXTS, "train") for name in config.task.monolingual]
    for row, column in ((row, columns["text"]) for rows, columns, *_ in opened for row in rows):
        text = str(row[column]).strip()
        if not text:
            skip("no text", row.where)
        elif content_key(text) in held_out:
            skip("a target of valid or test", row.where)
        else:
            yield row.where, text
